package embedded

// ServerUsers are the logins as the embedded server gets them.
var ServerUsers = serverUsers

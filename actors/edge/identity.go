package edge

import "crypto/md5" //nolint:gosec // the name hash of the game, not a safeguard

// OfflineUUID is the UUID an offline-mode server gives to name: version 3 over
// "OfflinePlayer:" and the name in its own case.
func OfflineUUID(name string) [16]byte {
	id := md5.Sum([]byte("OfflinePlayer:" + name)) //nolint:gosec // as above
	id[6] = id[6]&0x0F | 0x30
	id[8] = id[8]&0x3F | 0x80
	return id
}

// playerOf is the id the backend will give, or zero when nobody can say.
func playerOf(mode Identity, l loginStart) [16]byte {
	if mode == Offline {
		return OfflineUUID(l.name)
	}
	return l.uuid
}

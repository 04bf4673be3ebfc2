'use strict'

// Objectives and scores. A trigger score is locked until a player's use of it is enabled, and again after each use.
class Scoreboard {
  constructor () {
    this.objectives = new Map() // name -> { name, criteria, scores: Map holder -> { value, locked } }
  }

  add (name, criteria) {
    this.objectives.set(name, { name, criteria, scores: new Map() })
  }

  value (objective, holder) {
    return this.objectives.get(objective)?.scores.get(holder)?.value
  }

  // The score of a holder, made as a locked 0 if there is none.
  ensure (objective, holder) {
    if (!objective.scores.has(holder)) objective.scores.set(holder, { value: 0, locked: true })
    return objective.scores.get(holder)
  }

  // Names of everybody with any score.
  tracked () {
    return [...new Set([...this.objectives.values()].flatMap(objective => [...objective.scores.keys()]))]
  }

  // [objective, value] of one holder.
  scoresOf (holder) {
    return [...this.objectives.values()]
      .filter(objective => objective.scores.has(holder))
      .map(objective => [objective, objective.scores.get(holder).value])
  }

  reset (holder, objective) {
    const targets = objective ? [objective] : [...this.objectives.values()]
    for (const target of targets) target.scores.delete(holder)
  }
}

module.exports = { Scoreboard }

/**
 * The count of a load. Every record read ends in exactly one of the five others.
 * superseded: a later record of the same file has the same key.
 */
export interface Tally {
  readonly read: number;
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly superseded: number;
  readonly rejected: number;
}

export const emptyTally: Tally = {
  read: 0,
  inserted: 0,
  updated: 0,
  unchanged: 0,
  superseded: 0,
  rejected: 0,
};

export function addTallies(a: Tally, b: Tally): Tally {
  return {
    read: a.read + b.read,
    inserted: a.inserted + b.inserted,
    updated: a.updated + b.updated,
    unchanged: a.unchanged + b.unchanged,
    superseded: a.superseded + b.superseded,
    rejected: a.rejected + b.rejected,
  };
}

/** read = inserted + updated + unchanged + superseded + rejected. */
export function balances(tally: Tally): boolean {
  return tally.read === tally.inserted + tally.updated + tally.unchanged + tally.superseded + tally.rejected;
}

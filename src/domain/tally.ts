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

/** read = inserted + updated + unchanged + superseded + rejected. */
export function balances(tally: Tally): boolean {
  return tally.read === tally.inserted + tally.updated + tally.unchanged + tally.superseded + tally.rejected;
}

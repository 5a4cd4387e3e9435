/** The length of the sum of a row group: what `ContentHash` makes of its rows. */
export const sumBytes = 32;
const noSum = Buffer.alloc(sumBytes);

/** The sums of the row groups of a file, as the ledger has them: zeros for one that does not end with a block. */
export function packSums(sums: readonly (Buffer | null)[]): Buffer {
  return Buffer.concat(sums.map((sum) => sum ?? noSum));
}

/** Returns the sum of one of the row groups. */
export function sumIn(packed: Buffer | null, group: number): Buffer | null {
  const sum = packed?.subarray(group * sumBytes, (group + 1) * sumBytes);
  return sum === undefined || sum.length < sumBytes || sum.equals(noSum) ? null : sum;
}

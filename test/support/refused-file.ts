/*
 * A CSV of users as people and programs write it: one record in 25 is refused, for one of five causes. Its user `u<n>` stands in
 * row n.
 */

/** Of how many records one is of each cause. The number of records is to be a multiple of all of them. */
export const oneIn = {
  decimalComma: 100,
  otherEncoding: 100,
  innerQuotes: 100,
  noId: 200,
  noAmount: 200,
} as const;

export function refusedOf(rows: number): number {
  return Object.values(oneIn).reduce((sum, every) => sum + rows / every, 0);
}

function line(n: number): string {
  const amount = `${n % 1_000}.5`;
  switch (n % 200) {
    case 7:
    case 107:
      return `u${n},Anna,${n % 1_000},5\n`;
    case 23:
    case 123:
      return `u${n},M\xfcller,${amount}\n`;
    case 41:
    case 141:
      return `u${n},"Anna "Ann" Lee",${amount}\n`;
    case 59:
      return `,Anna,${amount}\n`;
    case 159:
      return `u${n},Anna\n`;
    default:
      return `u${n},Anna,${amount}\n`;
  }
}

export function* refusedFile(rows: number): Generator<Buffer> {
  yield Buffer.from('user_id,name,amount\n');
  for (let n = 1; n <= rows; ) {
    let text = '';
    for (const end = n + 5_000; n < end && n <= rows; n++) text += line(n);
    yield Buffer.from(text, 'latin1');
  }
}

const offered = ['application/json', 'text/csv', 'application/x-ndjson'] as const;
export type RowsType = (typeof offered)[number];

const aliases: Readonly<Record<string, RowsType>> = {
  'application/ndjson': 'application/x-ndjson',
  'application/jsonl': 'application/x-ndjson',
};

/** Of what is offered, what the caller likes best; JSON where it names none of it (anything, or no header). */
export function rowsType(accept = ''): RowsType {
  const wanted = accept
    .split(',')
    .map((each) => {
      const [type = '', ...parameters] = each.split(';').map((part) => part.trim().toLowerCase());
      const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
      return { type: aliases[type] ?? type, quality: quality === undefined ? 1 : Number(quality) };
    })
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality);
  for (const { type } of wanted) {
    const found = offered.find((each) => each === type);
    if (found !== undefined) return found;
  }
  return 'application/json';
}

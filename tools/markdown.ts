const maxColumns = 100;

/** Writes a value as JSON. Lines have at most `maxColumns`, and values that fit are on one line. */
export function layout(value: unknown, indent = ''): string {
  const text = spaced(value);
  if (typeof value !== 'object' || value === null || indent.length + text.length <= maxColumns) return text;
  const inner = `${indent}  `;
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const items = Array.isArray(value)
    ? value.map((item) => `${inner}${layout(item, inner)}`)
    : Object.entries(value).map(([key, item]) => `${inner}${JSON.stringify(key)}: ${layout(item, inner)}`);
  return `${open}\n${items.join(',\n')}\n${indent}${close}`;
}

export function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${spaced(item)}`);
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}

export function linked(text: string, toDocs: string): string {
  return text.replaceAll(/\bdocs\/([\w/-]+)\.md(#[\w-]+)?/g, (_, page: string, anchor = '') => {
    const path = toDocs === '.' ? `${page}.md` : `${toDocs}/${page}.md`;
    return `[${page.split('/').at(-1)}](${path}${anchor})`;
  });
}

export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll(/\s*\n\s*/g, ' ')).join(' | ')} |`;
  return [line(heads), `|${'---|'.repeat(heads.length)}`, ...rows.map(line)].join('\n');
}

export function codeBlock(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}

export function codeList(codes: readonly string[]): string {
  return codes.map((each) => `\`${each}\``).join(', ');
}

export function code(value: unknown): string {
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}

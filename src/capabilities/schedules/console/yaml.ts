const isPlain = (text: string): boolean =>
  /^[A-Za-z][\w ./-]*$/.test(text) && !/^(true|false|null|yes|no|on|off)$/i.test(text) && !/\s$/.test(text);

const wordOf = (text: string): string => (isPlain(text) ? text : JSON.stringify(text));

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export function writeYaml(value: object, indent = ''): string {
  return Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([name, member]) => {
      const start = `${indent}${wordOf(name)}:`;
      if (isObject(member) && Object.keys(member).length > 0) {
        return `${start}\n${writeYaml(member, `${indent}  `)}`;
      }
      return `${start} ${typeof member === 'string' ? wordOf(member) : JSON.stringify(member)}\n`;
    })
    .join('');
}

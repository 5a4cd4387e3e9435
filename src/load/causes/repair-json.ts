/*
 * Text that is JSON but for how it is written: single quotes, names without quotes, commas at the end, decimal commas, None, NaN.
 * One pass; what it cannot make sense of makes it give up, and whether it became JSON is for the parser to say.
 */

const words: ReadonlyMap<string, string> = new Map(
  Object.entries({
    true: 'true',
    false: 'false',
    null: 'null',
    True: 'true',
    False: 'false',
    None: 'null',
    TRUE: 'true',
    FALSE: 'false',
    NULL: 'null',
    nil: 'null',
    NaN: 'null',
    undefined: 'null',
  }),
);

/** The first group: a comma that nothing follows. */
const token =
  /(,(?=\s*(?:[}\]]|$)))|\s+|[{}[\]:,]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[-+]?\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?|[\p{L}_$][\p{L}\p{N}_$]*|;\s*$/suy;
const colonFollows = /\s*:/y;

/** The same as JSON; null if there is nothing to repair, or no way to. */
export function repairJson(text: string): string | null {
  const found: string[] = [];
  const within: string[] = [];
  for (let at = 0; at < text.length; ) {
    token.lastIndex = at;
    const [part = '', isSpareComma] = token.exec(text) ?? [];
    if (part === '') return null;
    at += part.length;
    if (part === '{' || part === '[') within.push(part);
    else if (part === '}' || part === ']') within.pop();
    colonFollows.lastIndex = at;
    const isName = colonFollows.test(text);
    const written = isSpareComma === undefined ? write(part, isName, within.at(-1) === '[') : '';
    if (written === null) return null;
    found.push(written);
  }
  const repaired = found.join('');
  return repaired === text ? null : repaired;
}

function write(part: string, isName: boolean, isInArray: boolean): string | null {
  const first = part[0] ?? '';
  if (first === "'") return requote(part.slice(1, -1));
  if (first === '"') return escapeControls(part);
  if (first === ';') return '';
  // In an array the comma may stand between two numbers.
  if (/[-+\d]/.test(first)) return (isInArray ? part : part.replace(',', '.')).replace(/^\+/, '');
  if (!/[\p{L}_$]/u.test(first)) return part;
  return isName ? JSON.stringify(part) : (words.get(part) ?? null);
}

function requote(inside: string): string {
  const plain = inside.replace(/\\.|"/gs, (found) => {
    if (found === '"') return '\\"';
    return found === "\\'" ? "'" : found;
  });
  return escapeControls(`"${plain}"`);
}

function escapeControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (control) => JSON.stringify(control).slice(1, -1));
}

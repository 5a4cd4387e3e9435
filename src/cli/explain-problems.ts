import type { RefusedFile } from '../operator-file/read.ts';
import { printable } from './table.ts';

/** `name:line:column: what is wrong`, as editors and terminals make links of. */
export function explainProblems(
  name: string,
  { problems, problemCount }: RefusedFile,
  consequence = 'nothing was applied',
): string {
  const lines = problems.map(
    ({ line, column, message }) => `${name}:${line}:${column}: ${printable(message, 400)}`,
  );
  const count = problemCount === 1 ? 'a problem' : `${problemCount} problems`;
  const rest = problemCount - problems.length;
  return [
    `${name} has ${count}; ${consequence}.`,
    ...lines,
    ...(rest > 0 ? [`… and ${rest} more.`] : []),
  ].join('\n');
}

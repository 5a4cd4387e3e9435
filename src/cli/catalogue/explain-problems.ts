import type { CatalogueReading } from '../../catalogue/file/read-catalogue-file.ts';
import { printable } from '../table.ts';

/** `name:line:column: what is wrong`, as editors and terminals make links of. */
export function explainProblems(name: string, { problems, problemCount }: CatalogueReading): string {
  const lines = problems.map(
    ({ line, column, message }) => `${name}:${line}:${column}: ${printable(message, 400)}`,
  );
  const count = problemCount === 1 ? 'a problem' : `${problemCount} problems`;
  const rest = problemCount - problems.length;
  return [
    `${name} has ${count}; nothing was applied.`,
    ...lines,
    ...(rest > 0 ? [`… and ${rest} more.`] : []),
  ].join('\n');
}

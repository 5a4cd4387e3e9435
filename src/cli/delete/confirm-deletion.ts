import { createInterface } from 'node:readline/promises';
import type { Entity } from '../../domain/entity.ts';
import { UsageError } from '../exit-codes.ts';
import { formatCount } from '../format-numbers.ts';
import { printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';

const shown = 5;
const singular = { users: 'user', companies: 'company' } as const satisfies Record<Entity, string>;

/** Whether the person at the terminal says yes. Throws `UsageError` where nobody is there. */
export async function confirmDeletion(
  { live, note }: Pick<Terminal, 'live' | 'note'>,
  entity: Entity,
  ids: readonly string[],
  { env, purgeExports }: { readonly env: string; readonly purgeExports: boolean },
): Promise<boolean> {
  if (!live || process.stdin.isTTY !== true) {
    throw new UsageError('Nobody can be asked here whether that is meant: add --yes.');
  }
  const some = ids.slice(0, shown).map((id) => printable(id, 40));
  note(`${some.join(', ')}${ids.length > shown ? ', …' : ''}`);
  const what = ids.length === 1 ? singular[entity] : entity;
  const exports = purgeExports ? ', and the files of all its exports' : '';
  const question = `Delete ${formatCount(ids.length)} ${what} of environment ${env}${exports}? This cannot be undone. [y/N] `;
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await asking.question(question)).trim());
  } finally {
    asking.close();
  }
}

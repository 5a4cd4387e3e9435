import { entities } from '../domain/entity.ts';
import type { Rows } from '../mapping/rows.ts';
import type { LoadSource } from '../postgres/stores/loads.ts';
import type { LoadContext } from './context.ts';

/** Learns the properties of the rows of a chunk; to be called before the transaction that writes them. */
export async function learnProperties(
  { knownProperties, db }: LoadContext,
  { dryRun, environmentId }: LoadSource,
  rows: Rows,
): Promise<void> {
  if (dryRun) return;
  for (const entity of entities) {
    await knownProperties.learnProperties(db, environmentId, entity, rows.types[entity].types());
  }
}

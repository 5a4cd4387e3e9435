import { setTimeout as delay } from 'node:timers/promises';
import { entities } from '../domain/entity.ts';
import { TransientError } from '../domain/errors.ts';
import { CHECKED_AT_A_TIME, RULES_KNOWN_MS, UNIQUE_WRITERS_MS } from '../domain/limits.ts';
import { type RulesDocument, uniqueProperties } from '../domain/rules.ts';
import { type Database, earlierWritersEnded } from '../postgres/database.ts';
import { type AppliedRules, storeRules } from '../postgres/stores/rules.ts';
import { claimStored, noteClaimed } from '../postgres/stores/unique-values.ts';

/**
 * Makes the rules of an environment what the document says, as its next version; the same rules again change nothing. Where values become
 * unique, those that profiles have already are claimed. Whoever writes claims for itself by then: so this waits until all do.
 */
export async function applyRules(
  db: Database,
  environmentId: number,
  document: RulesDocument,
  appliedBy: string | null,
): Promise<AppliedRules> {
  const rules = await storeRules(db, environmentId, document, appliedBy);
  if (rules.claimed) return rules;
  await delay(RULES_KNOWN_MS);
  if (!(await earlierWritersEnded(db, UNIQUE_WRITERS_MS)))
    throw new TransientError(
      'a transaction of the database goes on for too long; apply the rules again later',
    );
  const unique = uniqueProperties(document);
  for (const entity of entities) {
    if (!unique.some((each) => each.entity === entity)) continue;
    let after: string | null = null;
    do after = await claimStored(db, environmentId, entity, after, CHECKED_AT_A_TIME);
    while (after !== null);
  }
  await noteClaimed(db, environmentId, rules);
  return rules;
}

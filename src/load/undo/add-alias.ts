import type { MadeAlias } from '../../api/alias.ts';
import { inputError, suppressedError } from '../../domain/errors.ts';
import type { Link } from '../../domain/identities.ts';
import { inTransaction } from '../../postgres/database.ts';
import { findPerson, type JoinRequest, writeLinks } from '../../postgres/stores/aliases.ts';
import type { LoadContext } from '../context.ts';
import { startLaneSoon } from '../end-load.ts';

/**
 * Makes an id the alias of a user, and queues the job that moves what is stored under it.
 * @throws InputError `alias_taken` if it belongs to another person who may not be merged; `suppressed` if one of the ids is kept out.
 */
export async function addAlias(
  context: LoadContext,
  environmentId: number,
  link: Link,
  merges: boolean,
  job: JoinRequest,
): Promise<MadeAlias> {
  const shown = { ...link, linking: merges ? 'merge' : 'add' } as const;
  const added = await inTransaction(context.pool, async ({ db }) => {
    const { outcomes, jobId } = await writeLinks(db, environmentId, [shown], job);
    if (outcomes[0] === 'taken') {
      const message = 'The alias belongs to another person; merge both persons with merge=true';
      throw inputError('alias_taken', message, `alias: ${link.alias}`);
    }
    if (outcomes[0] === 'suppressed') throw suppressedError(`alias: ${link.alias}`);
    const userId = await findPerson(db, environmentId, link.userId);
    return { user_id: userId, alias: link.alias, is_new: outcomes[0] === 'made', job_id: jobId };
  });
  if (added.job_id !== null) startLaneSoon(context, environmentId);
  return added;
}

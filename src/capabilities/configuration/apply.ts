import { addEnvironment } from '../../access/acts.ts';
import { findEnvironment, lockEnvironment } from '../../access/environment-store.ts';
import { CommandFailed } from '../../cli/errors.ts';
import { type ItemChange, NO_ENVIRONMENT, type PlanOptions, type SectionPlan } from '../../cli/seam.ts';
import type { ActContext } from '../../postgres/acts.ts';
import type { Database } from '../../postgres/database.ts';
import type { EnvironmentFile } from './files.ts';

export interface SectionChange extends ItemChange {
  readonly section: string;
}

export interface EnvironmentPlan {
  readonly isNew: boolean;
  readonly changes: readonly SectionChange[];
}

export const isChange = ({ isNew, changes }: EnvironmentPlan): boolean => isNew || changes.length > 0;

export function planFile(
  db: Database,
  file: EnvironmentFile,
  options: PlanOptions,
): Promise<EnvironmentPlan> {
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (transaction) => {
      const environment = await findEnvironment(transaction, file.environment);
      const id = environment?.environmentId ?? NO_ENVIRONMENT;
      const plans = await planMembers(transaction, id, file, options);
      return { isNew: environment === null, changes: plans.flatMap(({ changes }) => changes) };
    });
}

export interface ApplyOptions extends PlanOptions {
  /** Returns false for a removal that nobody has confirmed. */
  readonly isConfirmed: (removal: SectionChange) => boolean;
}

/**
 * Applies a file to its environment, which is created if it is missing. Waits while another process
 * changes the environment. If a section throws, nothing is changed.
 */
export async function applyFile(
  { db, acts }: ActContext,
  file: EnvironmentFile,
  { prune, isConfirmed }: ApplyOptions,
): Promise<EnvironmentPlan> {
  const { plan, sections } = await db.transaction().execute(async (transaction) => {
    const { environmentId, isNew } = await provideEnvironment({ db: transaction, acts }, file.environment);
    await lockEnvironment(transaction, environmentId);
    const plans = await planMembers(transaction, environmentId, file, { prune });
    const changes = plans.flatMap((each) => each.changes);
    if (!changes.every((change) => change.action !== 'remove' || isConfirmed(change)))
      throw new CommandFailed('It has changed since the removals were confirmed. Run the command again.');
    const sections = plans.filter((each) => each.changes.length > 0).map(({ section }) => section);
    for (const section of sections) await section.write(acts);
    return { plan: { isNew, changes }, sections };
  });
  for (const section of sections) await section.afterCommit?.(db);
  return plan;
}

interface NamedPlan {
  readonly section: SectionPlan;
  readonly changes: readonly SectionChange[];
}

async function planMembers(
  transaction: Database,
  environmentId: number,
  { members }: EnvironmentFile,
  options: PlanOptions,
): Promise<NamedPlan[]> {
  const plans: NamedPlan[] = [];
  for (const { name, section, declared } of members) {
    const plan = await section.plan(transaction, environmentId, declared, options);
    plans.push({ section: plan, changes: plan.changes.map((change) => ({ section: name, ...change })) });
  }
  return plans;
}

async function provideEnvironment(context: ActContext, name: string) {
  const existing = await findEnvironment(context.db, name);
  if (existing !== null) return { ...existing, isNew: false };
  try {
    return { ...(await addEnvironment(context, name)), isNew: true };
  } catch (error) {
    // Another process may have created the environment meanwhile.
    const other = await findEnvironment(context.db, name);
    if (other !== null) return { ...other, isNew: false };
    throw error;
  }
}

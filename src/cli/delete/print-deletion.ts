import { listOutcomes } from '../../deletion/inspect-deletions.ts';
import { renderDeletionDetail, renderOutcome } from '../../deletion/render-deletion.ts';
import type { Deletion, IdOutcome } from '../../domain/deletion.ts';
import { MAX_DELETION_IDS } from '../../domain/limits.ts';
import { formatCount } from '../format-numbers.ts';
import { linkBase } from '../link-base.ts';
import type { Session } from '../session/session.ts';
import { printable, renderTable } from '../table.ts';
import type { Terminal } from '../terminal.ts';

/** A longer list is for `--json`. */
const shown = 50;

/** How a deletion ended, or how far it was when we stopped waiting. */
export async function printDeletion(
  terminal: Terminal,
  { system }: Session,
  seen: Deletion,
  json: boolean,
): Promise<void> {
  const { jobId, environmentId, entity, counts, removed, status } = seen;
  const limit = json ? MAX_DELETION_IDS : shown;
  const { outcomes } = await listOutcomes(system, environmentId, jobId, { limit, after: 0 });
  if (json) {
    const job = renderDeletionDetail(seen, linkBase(system.config));
    terminal.json({ job, outcomes: outcomes.map(renderOutcome) });
    return;
  }
  if (counts.requested <= shown) for (const line of table(seen, outcomes)) terminal.print(line);
  const found = `${entity}: ${formatCount(counts.deleted)} deleted, ${formatCount(counts.not_found)} not found`;
  const events = `${formatCount(removed.events)} events ${entity === 'users' ? 'removed' : 'changed'}`;
  const others = `${formatCount(removed.rejects)} refused records, ${formatCount(removed.files)} received files and the files of ${formatCount(removed.exports)} exports removed`;
  terminal.print(`${found}; ${events}, ${others}.  job ${jobId}`);
  if (seen.failure !== null) terminal.note(`Failed: ${seen.failure.message} [${seen.failure.code}]`);
  if (seen.endedAt === null) {
    terminal.note(
      `sluice: the deletion is ${status} still; it goes on as long as workers run, or when they do again.`,
    );
  }
}

function table({ entity }: Deletion, outcomes: readonly IdOutcome[]): string[] {
  const columns = [
    { title: 'id' },
    { title: 'outcome' },
    { title: 'events', align: 'right' },
    ...(entity === 'companies' ? [{ title: 'users', align: 'right' } as const] : []),
  ] as const;
  const rows = outcomes.map(({ id, outcome, events, users }) => [
    printable(id, 60),
    outcome.replace('_', ' '),
    formatCount(events),
    formatCount(users),
  ]);
  return renderTable(
    columns,
    rows.map((cells) => cells.slice(0, columns.length)),
  );
}

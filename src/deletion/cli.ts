import { isUtf8 } from 'node:buffer';
import { createInterface } from 'node:readline/promises';
import { MAX_DELETION_BYTES, MAX_DELETION_IDS } from '../base/limits.ts';
import { formatCount, plural } from '../base/wording.ts';
import {
  defineCommand,
  flag,
  hidden,
  type Invocation,
  type OptionOf,
  several,
  text,
} from '../cli/define-command.ts';
import { CommandFailed, exitCodeOf, UsageError } from '../cli/errors.ts';
import { type Followed, follow } from '../cli/follow.ts';
import { readBytes } from '../cli/input-files.ts';
import { listenForStop } from '../cli/processes.ts';
import { type EnvironmentSession, withEnvironment } from '../cli/session.ts';
import { printable, printRecords } from '../cli/terminal.ts';
import { withWorkers } from '../cli/workers.ts';
import type { System } from '../context.ts';
import type { Entity } from '../domain/entity.ts';
import { readJobHistory } from '../tasks/job-store.ts';
import {
  checkIds,
  listOutcomes,
  renderDeletionDetail,
  renderOutcome,
  requestDeletion,
  requireDeletion,
} from './deletions.ts';
import type { DeletionOption } from './seam.ts';
import type { Deletion } from './store.ts';

const singular = { users: 'user', companies: 'company' } as const satisfies Record<Entity, string>;

function deleteEntity(entity: Entity, others: string, offered: readonly DeletionOption[]) {
  const optionFlags: Readonly<Record<string, OptionOf<unknown>>> = Object.fromEntries(
    offered.map((option) => {
      const shown = flag(`--${option.name}`, option.flag);
      return [option.name, option.entity === entity ? shown : hidden(shown)];
    }),
  );
  return defineCommand({
    name: entity,
    summary: `delete ${entity}, and ${others}`,
    description:
      `Deletes ${entity}, and ${others}, after every load that was accepted before.\n` +
      'Waits for the end, and shows what became of each id.\n' +
      'What else is removed, and what stays how long: docs/deletion.md.',
    argument: several('[id...]', 'ids; after -- those that begin with a dash'),
    options: {
      file: text('--file <path>', 'take ids from a file too, one a line; - reads standard input'),
      purgeExports: flag('--purge-exports', 'remove the files of all exports of the environment too'),
      ...optionFlags,
      yes: flag('--yes', 'do not ask; required without a terminal'),
    },
    environment: true,
    json: 'print the result as JSON',
    details: `Exit code: 0 done, also if some ids are unknown; 1 failed, or not confirmed; 2
wrong options; 130 stopped by Ctrl-C: the deletion stays accepted, and workers
that run, now or later, complete it.`,
    examples: [
      `sluice delete ${entity} 17 18`,
      `sluice delete ${entity} --file ids.txt --yes`,
      ...offered
        .filter((option) => option.entity === entity)
        .map(({ name }) => `sluice delete ${entity} 17 --${name}`),
      `sluice delete ${entity} 17 --env staging --yes --json | jq .outcomes`,
    ],
    run: async (invocation) => {
      const { argument: idArguments, flags } = invocation;
      const { purgeExports } = flags;
      const isSet = ({ name }: DeletionOption) => (flags as Readonly<Record<string, unknown>>)[name] === true;
      const chosen = offered.filter(isSet);
      for (const option of chosen)
        if (option.entity !== entity)
          throw new UsageError(`--${option.name} is for ${option.entity} only: leave it out.`);
      const fileIds = flags.file === undefined ? [] : await readIdFile(flags.file);
      if (idArguments.length + fileIds.length === 0) throw new UsageError('Name the ids, or --file PATH.');
      const ids = checkIds(entity, [...idArguments, ...fileIds]);
      if (!flags.yes && !(await confirm(invocation, entity, ids, purgeExports, chosen))) {
        throw new CommandFailed('Nothing was deleted.');
      }
      const stop = listenForStop();
      await withEnvironment(invocation, async (session) => {
        const { system, environmentId } = session;
        const jobId = await requestDeletion(
          system,
          environmentId,
          entity,
          {
            ids,
            purgeExports,
            options: Object.fromEntries(offered.map((option) => [option.name, isSet(option)])),
          },
          null,
          { requestId: null, origin: { kind: 'command_line', name: null } },
        );
        await withWorkers(session, { entry: invocation.cli.entry, stop, tasks: 1 }, async () => {
          const deletion = await followDeletion(system, { environmentId, jobId, signal: stop.signal });
          await print(invocation, session, deletion);
          process.exitCode = exitCodeOf(deletion);
        });
      });
    },
  });
}

export const deleteData = (options: readonly DeletionOption[]) =>
  defineCommand({
    name: 'delete',
    summary: 'delete users or companies',
    description:
      'Deletes what is stored of users or companies. A server need not run; if one does, its workers do the work.',
    examples: ['sluice delete users u1 u2', 'sluice delete companies --file gone.txt --yes --json'],
    commands: [
      deleteEntity('users', 'their events', options),
      deleteEntity('companies', 'what refers to them', options),
    ],
  });

const byteOrderMark = '\ufeff';

/** Reads one id per line. `-` means standard input. @throws UsageError */
async function readIdFile(path: string): Promise<string[]> {
  const bytes = await readBytes(path, MAX_DELETION_BYTES);
  if (bytes.length > MAX_DELETION_BYTES)
    throw new UsageError(`${path} has more than ${MAX_DELETION_BYTES} bytes.`);
  if (!isUtf8(bytes)) throw new UsageError(`${path} is not UTF-8.`);
  return bytes
    .toString('utf8')
    .replace(byteOrderMark, '')
    .split(/\r?\n/)
    .filter((line) => line !== '');
}

const shownToConfirm = 5;

async function confirm(
  { terminal, env }: Invocation,
  entity: Entity,
  ids: readonly string[],
  purgeExports: boolean,
  chosen: readonly DeletionOption[],
): Promise<boolean> {
  if (!terminal.live || process.stdin.isTTY !== true) {
    throw new UsageError('There is no terminal to confirm this on: add --yes.');
  }
  const some = ids.slice(0, shownToConfirm).map((id) => printable(id, 40));
  terminal.inform(`${some.join(', ')}${ids.length > shownToConfirm ? ', …' : ''}`);
  const what = ids.length === 1 ? singular[entity] : entity;
  const exports = purgeExports ? ', and the files of all its exports' : '';
  const more = chosen.map(({ question }) => `, ${question}`).join('');
  const question = `Delete ${formatCount(ids.length)} ${what} of environment ${env}${exports}${more}? This cannot be undone. [y/N] `;
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await asking.question(question)).trim());
  } finally {
    asking.close();
  }
}

const shownOutcomes = 50;

async function print(
  { terminal, json }: Invocation,
  { system, environmentId, baseUrl }: EnvironmentSession,
  deletion: Deletion,
): Promise<void> {
  const { jobId, entity, counts, removed, status } = deletion;
  const limit = json ? MAX_DELETION_IDS : shownOutcomes;
  const { outcomes } = await listOutcomes(system, environmentId, jobId, { limit, after: 0 });
  if (json) {
    const history = await readJobHistory(system.db, environmentId, jobId);
    const job = renderDeletionDetail(deletion, history, baseUrl);
    return terminal.json({ job, outcomes: outcomes.map(renderOutcome) });
  }
  if (counts.requested <= shownOutcomes) {
    printRecords(terminal, outcomes.map(renderOutcome));
  }
  const ids = `${entity}: ${formatCount(counts.deleted)} deleted, ${formatCount(counts.not_found)} not found`;
  const events = `${plural(removed.events, 'event')} ${entity === 'users' ? 'removed' : 'changed'}`;
  const others = `${plural(removed.rejects, 'refused record')}, ${plural(removed.files, 'received file')} and the files of ${plural(removed.exports, 'export')} removed`;
  terminal.print(`${ids}; ${events}, ${others}.  job ${jobId}`);
  if (deletion.failure !== null)
    terminal.inform(`Failed: ${deletion.failure.message} [${deletion.failure.code}]`);
  if (deletion.endedAt === null) {
    terminal.inform(`sluice: the deletion is still ${status}; it continues whenever workers run.`);
  }
}

export function followDeletion({ db }: System, followed: Followed): Promise<Deletion> {
  return follow(followed, {
    read: () => requireDeletion({ db }, followed.environmentId, followed.jobId),
    show: () => undefined,
    whenGone: `Deletion ${followed.jobId} is safe in it, and continues when database and workers run again: \`sluice start\`.`,
  });
}

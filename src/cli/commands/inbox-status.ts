import type { Command } from 'commander';
import { type InboxStatus, inspectInbox } from '../../inbox/inspect-inbox.ts';
import type { Cli } from '../cli.ts';
import { UsageError } from '../exit-codes.ts';
import { parseCount } from '../import/parse-options.ts';
import { requireEnvironment, withSession } from '../session/session.ts';
import { printable, renderTable } from '../table.ts';

interface Flags {
  readonly env?: string;
  readonly limit: number;
  readonly json: boolean;
}

const environmentColumns = [
  { title: 'environment' },
  { title: 'waiting', align: 'right' },
  { title: 'claimed', align: 'right' },
  { title: 'loading', align: 'right' },
  { title: 'held by a wrong mapping.yaml' },
] as const;

const recentColumns = [
  { title: 'at' },
  { title: 'environment' },
  { title: 'file' },
  { title: 'outcome' },
  { title: 'job' },
  { title: 'why' },
] as const;

export function addInboxStatusCommand(inbox: Command, cli: Cli): void {
  inbox
    .command('status')
    .summary('what waits, what is being loaded, what became of the last ones')
    .description(
      'Shows for each environment the files that wait in its folder, those that are claimed and those whose loads run,\n' +
        'those that are left alone and why, and what became of the last ones. INBOX_DIR must be that of the workers.',
    )
    .option('--env <name>', 'this environment only')
    .option('--limit <n>', 'how many of the last ones', parseCount, 10)
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice inbox status\n  $ sluice inbox status --env default --json | jq .environments[0].waiting',
    )
    .action((flags: Flags, command: Command) => show(cli, command, flags));
}

async function show(cli: Cli, command: Command, { env, limit, json }: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { inboxDir } = session.settings.config;
    if (inboxDir === null) throw new UsageError('The inbox is off: INBOX_DIR is not set (docs/inbox.md).');
    if (env !== undefined) await requireEnvironment(session, env);
    const status = await inspectInbox(session.system, inboxDir, { environment: env ?? null, limit });
    if (status === null) {
      throw new UsageError(
        `Nobody has watched ${inboxDir} yet: start workers with this INBOX_DIR, \`sluice start\`.`,
      );
    }
    if (json) cli.terminal.json(render(status));
    else print(cli, status);
  });
}

function render({ environments, recent }: InboxStatus): object {
  return {
    environments,
    recent: recent.map(({ jobId, isDuplicate, concludedAt, ...rest }) => ({
      ...rest,
      job_id: jobId,
      is_duplicate: isDuplicate,
      concluded_at: concludedAt,
    })),
  };
}

function print({ terminal }: Cli, { environments, recent }: InboxStatus): void {
  const lines = environments.map(({ environment, waiting, claimed, loading, held }) => [
    environment,
    String(waiting),
    String(claimed),
    String(loading),
    held.join(', '),
  ]);
  for (const line of renderTable(environmentColumns, lines)) terminal.print(line);
  for (const { environment, ignored } of environments) {
    for (const { name, why } of ignored) terminal.print(`${environment}/${printable(name, 80)} ${why}`);
  }
  if (recent.length === 0) {
    terminal.note('No file has been taken yet.');
    return;
  }
  terminal.print('');
  const cells = recent.map(({ concludedAt, environment, name, outcome, jobId, reasons }) => [
    `${concludedAt.toISOString().slice(0, 19).replace('T', ' ')}Z`,
    environment,
    printable(name, 36),
    outcome,
    jobId ?? '',
    printable(reasons[0]?.message ?? '', 60),
  ]);
  for (const line of renderTable(recentColumns, cells)) terminal.print(line);
}

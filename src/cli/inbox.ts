import { type InboxStatus, inspectInbox } from '../sources/inbox/inspect-inbox.ts';
import { defineCommand } from './define-command.ts';
import { UsageError } from './errors.ts';
import { columnsOf, formatTime, printable, printTable } from './format.ts';
import { parseCount, parsed, text } from './options.ts';
import { requireEnvironment } from './session.ts';
import type { Terminal } from './terminal.ts';

const status = defineCommand({
  name: 'status',
  summary: 'what waits, what is being loaded, what became of the last ones',
  description:
    'Shows for each environment the files that wait in its folder, those that are claimed and those whose loads run,\n' +
    'those that are left alone and why, and what became of the last ones. INBOX_DIR must be that of the workers.',
  options: {
    env: text('--env <name>', 'this environment only'),
    limit: parsed('--limit <n>', 'how many of the last ones', parseCount, 10),
  },
  json: true,
  examples: ['sluice inbox status', 'sluice inbox status --env default --json | jq .environments[0].waiting'],
  inSession: async (call) => {
    const { flags, settings, system, json, terminal } = call;
    const { env, limit } = flags;
    const { inboxDir } = settings.config;
    if (inboxDir === null) throw new UsageError('The inbox is off: INBOX_DIR is not set (docs/inbox.md).');
    if (env !== undefined) await requireEnvironment(call, env);
    const found = await inspectInbox(system, inboxDir, { environment: env ?? null, limit });
    if (found === null) {
      throw new UsageError(
        `Nobody has watched ${inboxDir} yet: start workers with this INBOX_DIR, \`sluice start\`.`,
      );
    }
    if (json) terminal.json(render(found));
    else print(terminal, found);
  },
});

function render({ environments, recent }: InboxStatus): object {
  return {
    environments: environments.map(({ files: _files, taken: _taken, ...rest }) => rest),
    recent: recent.map(({ fileId, jobId, isDuplicate, concludedAt, ...rest }) => ({
      ...rest,
      file_id: fileId,
      job_id: jobId,
      is_duplicate: isDuplicate,
      concluded_at: concludedAt,
    })),
  };
}

const held = 'held by a wrong mapping.yaml';

function print(terminal: Terminal, { environments, recent }: InboxStatus): void {
  const lines = environments.map(({ environment, waiting, claimed, loading, held }) => [
    environment,
    String(waiting),
    String(claimed),
    String(loading),
    held.join(', '),
  ]);
  printTable(terminal, columnsOf('environment', '>waiting', '>claimed', '>loading', held), lines);
  for (const { environment, ignored } of environments) {
    for (const { name, why } of ignored) terminal.print(`${environment}/${printable(name, 80)} ${why}`);
  }
  if (recent.length === 0) {
    terminal.inform('No file has been taken yet.');
    return;
  }
  terminal.print('');
  const cells = recent.map(({ concludedAt, environment, name, outcome, jobId, reasons }) => [
    formatTime(concludedAt),
    environment,
    printable(name, 36),
    outcome,
    jobId ?? '',
    printable(reasons[0]?.message ?? '', 60),
  ]);
  printTable(terminal, columnsOf('at', 'environment', 'file', 'outcome', 'job', 'why'), cells);
}

export const inbox = defineCommand({
  name: 'inbox',
  summary: 'look at the folder that is watched for files',
  description:
    'Looks at the inbox: INBOX_DIR/<environment>/, whose files the workers of `sluice start` and `sluice work` load.',
  examples: ['sluice inbox status', 'sluice inbox status --env default --json'],
  commands: [status],
});

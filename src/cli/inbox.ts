import { render } from '../api/render.ts';
import { inspectInbox } from '../sources/inbox/inspect-inbox.ts';
import { defineCommand, limitOption, text } from './define-command.ts';
import { UsageError } from './errors.ts';
import { requireEnvironment } from './session.ts';
import { printable, printRecords } from './terminal.ts';

const status = defineCommand({
  name: 'status',
  summary: 'what waits, what is being loaded, what became of the last ones',
  description:
    'Shows for each environment the files that wait in its folder and those whose loads run,\n' +
    'those that are left alone and why, and what became of the last ones. INBOX_DIR must be that of the workers.',
  options: {
    env: text('--env <name>', 'this environment only'),
    limit: limitOption(10, 'how many of the last ones'),
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
    const { environments, recent } = found;
    if (json) {
      const shown = environments.map(({ files: _files, taken: _taken, ...rest }) => rest);
      return terminal.json({ environments: shown, recent: recent.map(render) });
    }
    printRecords(terminal, environments, ['environment', 'waiting', 'loading', 'held']);
    for (const { environment, ignored } of environments) {
      for (const { name, why } of ignored) terminal.print(`${environment}/${printable(name, 80)} ${why}`);
    }
    if (recent.length === 0) return terminal.inform('No file has been taken yet.');
    terminal.print('');
    const columns = ['concluded_at', 'environment', 'name', 'outcome', 'job_id', 'reasons'];
    printRecords(terminal, recent.map(render), columns);
  },
});

export const inbox = defineCommand({
  name: 'inbox',
  summary: 'look at the folder that is watched for files',
  description:
    'Looks at the inbox: INBOX_DIR/<environment>/, whose files the workers of `sluice start` and `sluice work` load.',
  examples: ['sluice inbox status', 'sluice inbox status --env default --json'],
  commands: [status],
});

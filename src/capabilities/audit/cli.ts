import { requireEnvironment } from '../../access/acts.ts';
import { formatCount } from '../../base/wording.ts';
import { defineCommand, flag, limitOption, parsed, parseSince, text } from '../../cli/define-command.ts';
import { UsageError } from '../../cli/errors.ts';
import { type Columns, formatTime, printable, printTable } from '../../cli/terminal.ts';
import type { AuditEntry } from './api.ts';
import { exportEntries, recordDownload, renderEntry } from './entries.ts';
import { listEntries } from './store.ts';

const columns: Columns<AuditEntry> = {
  at: ({ last_at }) => formatTime(new Date(last_at)),
  environment: ({ environment }) => environment ?? '–',
  who: ({ actor }) => printable(actor.name ?? actor.kind, 40),
  from: ({ actor }) => printable(actor.address ?? '–', 40),
  action: ({ action }) => action,
  thing: ({ thing }) => printable(thing ?? '–', 60),
  details: ({ details }) =>
    printable(
      Object.entries(details)
        .map(([name, value]) => `${name}: ${String(value)}`)
        .join(', '),
      80,
    ),
  '>times': ({ count }) => formatCount(count),
};

export const audit = defineCommand({
  name: 'audit',
  summary: 'who did what, on which thing, from where and when',
  description:
    'Lists the audit log of all environments, newest first: keys, settings, jobs, downloads, sign-ins, and refused keys. It\n' +
    'holds no values of records. Entries are kept for AUDIT_DAYS.',
  options: {
    env: text('--env <name>', 'only of this environment'),
    by: text('--by <name>', 'only acts of this key, person, account or schedule'),
    thing: text('--thing <id>', 'only acts on the thing with this id or name, such as a job'),
    action: text('--action <action>', 'only this, such as key.created, or a noun, such as key'),
    since: parsed('--since <when>', 'how long ago, such as 24h or 7d, or a date', parseSince),
    limit: limitOption(50),
    ndjson: flag('--ndjson', 'print all that match, one JSON object a line'),
  },
  json: 'print JSON, as GET /v1/audit returns it under `data`',
  examples: [
    'sluice audit --since 24h',
    'sluice audit --by 0tzwkpc87gq5 --action file.downloaded',
    "sluice audit --action sign_in.refused --json | jq 'map(.count) | add'",
    'sluice audit --ndjson > audit.ndjson',
  ],
  inSession: async ({ system, flags, terminal, json }) => {
    const { db } = system;
    const { env, by: actor, thing, action, since, limit } = flags;
    if (json && flags.ndjson) throw new UsageError('Choose --json or --ndjson.');
    const environment = env === undefined ? null : await requireEnvironment(system, env);
    const scope = environment === null ? 'service' : { environmentId: environment.environmentId };
    const filter = { actor, thing, action, since };
    if (flags.ndjson) {
      await recordDownload(system, environment?.environmentId ?? null);
      for await (const lines of exportEntries(db, scope, filter)) await terminal.write(lines);
      return;
    }
    const entries = (await listEntries(db, scope, filter, { before: null, limit })).map(renderEntry);
    if (json) terminal.json(entries);
    else if (entries.length > 0) printTable(terminal, columns, entries);
    else
      terminal.inform(
        system.config.auditDays === 0
          ? 'Nothing is recorded, because AUDIT_DAYS is 0.'
          : 'No entry matches; entries are kept for AUDIT_DAYS.',
      );
  },
});

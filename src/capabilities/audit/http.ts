import { Readable } from 'node:stream';
import pLimit from 'p-limit';
import { Type } from 'typebox';
import { takePage } from '../../base/pages.ts';
import { optional } from '../../base/validation.ts';
import { askedPage, pageBytes, rowCursor, rowPage, sendEnvelope } from '../../http/page.ts';
import { dateOf, instantParameter, optionalChoice, textParameter } from '../../http/parameters.ts';
import { lenientQuery } from '../../http/plugins/validation.ts';
import { type Route, route } from '../../http/route.ts';
import { exampleText } from '../../http/schema.ts';
import { takeTurns } from '../../postgres/pool.ts';
import { entryPage } from './api.ts';
import { exportEntries, recordDownload, renderEntry } from './entries.ts';
import { listEntries } from './store.ts';

const MAX_FILTER_BYTES = 800;
const exportsAtATime = 2;

const instant = (name: string, description: string) =>
  Type.Optional(
    instantParameter(
      description,
      `${name} is a day or an instant such as 2026-11-20T12:00:00Z`,
      '2026-11-20',
    ),
  );

const query = lenientQuery({
  ...rowPage,
  actor: textParameter(
    'actor',
    MAX_FILTER_BYTES,
    'Only return acts of the actor with this name.',
    '0tzwkpc87gq5',
  ),
  thing: textParameter('thing', MAX_FILTER_BYTES, 'Only return acts on the thing with this ID or name.'),
  action: optional(
    Type.String({
      pattern: '^[a-z_]{1,60}(\\.[a-z_]{1,60})?$',
      description: 'Only return this action, such as `key.created`, or all actions on a noun, such as `key`.',
      examples: ['key'],
    }),
    'action is a noun such as key, or a noun and a verb such as key.created',
  ),
  since: instant('since', 'Only return what happened since then.'),
  until: instant('until', 'Only return what happened before then.'),
  format: optionalChoice(
    ['json', 'ndjson'],
    'format must be json or ndjson',
    '`json` returns a page, and `ndjson` all matching entries as a file.',
    'json',
  ),
});

const line = '{"id":"4711","environment":"default","action":"key.created"}\n';

const list = route({
  at: 'GET /v1/audit',
  operationId: 'listAuditEntries',
  summary: 'List the audit log',
  description: `Lists what was done in the session's environment, newest first. Entries are kept for AUDIT_DAYS.`,
  access: 'admin',
  config: pageBytes,
  query,
  answer: {
    description: 'A page of entries, or a file. `Link` comes with pages, `Content-Disposition` with files.',
    headers: ['Link', 'Content-Disposition'],
    content: {
      'application/json': { schema: entryPage.ref },
      'application/x-ndjson': exampleText('One line for each entry.', 'entry', 'One entry', line),
    },
  },
  prepare: () => pLimit(exportsAtATime),
  handle: async ({ prepared: inTurn, ...call }) => {
    const { system, request, reply, environment: environmentId } = call;
    const { since, until, format, ...named } = call.query;
    const filter = { ...named, since: dateOf(since), until: dateOf(until) };
    const { db } = system.reader;
    if (format === 'ndjson') {
      reply
        .header('content-type', 'application/x-ndjson')
        .header('content-disposition', 'attachment; filename="audit.ndjson"');
      if (request.method === 'HEAD') return reply.send('');
      await recordDownload(system, environmentId);
      const pieces = takeTurns(exportEntries(db, { environmentId }, filter), inTurn);
      return reply.send(Readable.from(pieces, { objectMode: false }));
    }
    const { limit, after } = askedPage(call.query, rowCursor);
    const entries = await listEntries(db, { environmentId }, filter, { before: after, limit: limit + 1 });
    const { items, next } = takePage(entries, limit, ({ entryId }) => rowCursor.write(entryId));
    return sendEnvelope(call, items.map(renderEntry), next);
  },
});

export const auditRoutes: readonly Route[] = [list];

/**
 * A minimal server to compare sluice with, in a process of its own: Fastify with its JSON parser, a
 * check of the key and a schema. `bare` writes nothing. `insert` runs a prepared INSERT per event,
 * which looks up the company. `batched` inserts all waiting events with sluice's statement, and
 * runs two of these statements at a time. No batching can gain more.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Fastify from 'fastify';
import pg from 'pg';
import { packageRoot } from '../src/base/package-root.ts';
import { uuidv7 } from '../src/base/uuid.ts';

interface Body {
  readonly user_id: string;
  readonly event_name?: string;
  readonly metadata?: object;
}

const mode = process.argv[2];
const connections = mode === 'batched' ? 2 : 8;
const insert = `
  insert into sluice.events (environment_id, event_id, event_name, user_id, company_id, source, inserted_at, metadata)
  select 1, $1, $2, $3, (select company_id from sluice.users where environment_id = 1 and user_id = $3),
    'backend-http', clock_timestamp(), $4`;
const batchInsert = readFileSync(join(packageRoot, 'sql', 'queries', 'insert-events.sql'), 'utf8');
const pool =
  mode === 'bare'
    ? null
    : new pg.Pool({
        connectionString: process.env['DATABASE_URL'],
        max: connections,
        options: '-c search_path=sluice,pg_catalog',
      });

/** For each waiting event, its text for the statement, and the function that responds. */
let waiting: { readonly text: string; readonly answer: () => void }[] = [];
let running = 0;

async function writeWaiting(): Promise<void> {
  if (running === connections || waiting.length === 0) return;
  const window = waiting;
  waiting = [];
  running++;
  await pool?.query({
    name: 'batch',
    text: batchInsert,
    values: [`[${window.map(({ text }) => text)}]`, [1], []],
  });
  running--;
  for (const { answer } of window) answer();
  void writeWaiting();
}

const body = (...required: readonly string[]): object => ({
  type: 'object',
  required,
  properties: {
    user_id: { type: 'string', minLength: 1, maxLength: 255 },
    event_name: { type: 'string', minLength: 1, maxLength: 255 },
    metadata: { type: 'object', additionalProperties: true },
  },
});

const app = Fastify();
const authorization = `Token ${process.env['API_KEY']}`;
app.addHook('onRequest', (request, reply, done) => {
  if (request.headers.authorization === authorization) done();
  else reply.code(401).send({ error: 'Unauthorized' });
});
const track = { schema: { body: body('user_id', 'event_name') } };
if (pool === null) {
  app.post('/v1/track', track, (_request, reply) => void reply.code(202).send());
} else if (mode === 'batched') {
  app.post<{ Body: Body }>('/v1/track', track, ({ body }, reply) => {
    const { event_name: n, user_id: u, metadata: p } = body;
    const text = JSON.stringify({ e: 1, i: uuidv7(), n, u, p });
    waiting.push({ text, answer: () => void reply.code(202).send() });
    setImmediate(writeWaiting);
  });
} else {
  app.post<{ Body: Body }>('/v1/track', track, async ({ body }, reply) => {
    const values = [uuidv7(), body.event_name, body.user_id, JSON.stringify(body.metadata)];
    await pool.query({ name: 'insert', text: insert, values });
    return reply.code(202).send();
  });
}
app.post(
  '/v1/identify',
  { schema: { body: body('user_id') } },
  (_request, reply) => void reply.code(202).send(),
);
process.send?.(await app.listen({ host: '127.0.0.1', port: 0 }));
process.once('disconnect', () => process.exit());

/**
 * The simplest server, in a process of its own: a bare Fastify route with a prepared query by
 * primary key. It has as many connections as the service has for reads, and checks no key, schema
 * or limits.
 */
import Fastify from 'fastify';
import pg from 'pg';

const connections = 4;
const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: connections });
const app = Fastify();
const text =
  'select user_id, company_id, metadata, first_seen_at, last_seen_at, updated_at from sluice.users where environment_id = 1 and user_id = $1';
app.get<{ Params: { id: string } }>('/v1/users/:id', async (request) => {
  const { rows } = await pool.query({ name: 'user', text, values: [request.params.id] });
  return rows[0] as object;
});
process.send?.(await app.listen({ host: '127.0.0.1', port: 0 }));
process.once('disconnect', () => process.exit());

import { sql } from 'kysely';
import { JOB_TRACE_DAYS } from '../../domain/limits.ts';
import { readTraceparent, type SpanIdentity, writeTraceparent } from '../../domain/trace.ts';
import type { Database } from '../database.ts';

/** Of the process: what it does now is part of a trace, or not. */
interface Traced {
  readonly active: SpanIdentity | null;
}

/** Lets what becomes of a job be part of the trace of what asked for it. In the transaction that makes the job. */
export async function keepTrace(
  db: Database,
  tracing: Traced | null | undefined,
  jobId: string,
): Promise<void> {
  const active = tracing?.active ?? null;
  if (active === null) return;
  await db
    .insertInto('job_traces')
    .values({ job_id: jobId, traceparent: writeTraceparent(active) })
    .onConflict((conflict) => conflict.column('job_id').doNothing())
    .execute();
}

/** Null: the job came without a trace. */
export async function readTrace(db: Database, jobId: string): Promise<SpanIdentity | null> {
  const row = await db
    .selectFrom('job_traces')
    .select('traceparent')
    .where('job_id', '=', jobId)
    .executeTakeFirst();
  return readTraceparent(row?.traceparent);
}

/** No job takes as long as these are kept. */
export async function forgetOldTraces(db: Database): Promise<void> {
  await db
    .deleteFrom('job_traces')
    .where('created_at', '<', sql<Date>`now() - ${JOB_TRACE_DAYS} * interval '1 day'`)
    .execute();
}

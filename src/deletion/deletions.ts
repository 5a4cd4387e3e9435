import { isUtf8 } from 'node:buffer';
import { Type } from 'typebox';
import { inputError } from '../base/errors.ts';
import { defuse } from '../base/formula.ts';
import { MAX_DELETION_IDS, MAX_ID_BYTES } from '../base/limits.ts';
import { takePage, walkPages } from '../base/pages.ts';
import { uuidv7 } from '../base/uuid.ts';
import {
  compileSchema,
  ruled,
  textProblem,
  throwProblems,
  type Wording,
  worded,
} from '../base/validation.ts';
import type { IdOutcome } from '../domain/deletion.ts';
import { type Entity, idColumn } from '../domain/entity.ts';
import { jobFields, type Origin } from '../domain/task.ts';
import { isObject, markedNumber, parseJsonText } from '../formats/json-text.ts';
import { noRejects, renderJobListItem, renderRun } from '../http/render.ts';
import type { LoadContext } from '../load/context.ts';
import { startLaneSoon } from '../load/end.ts';
import { csvCell } from '../load/rejects/text.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import { claimIdempotencyKey, type Idempotency } from '../tasks/idempotency.ts';
import type { JobHistory } from '../tasks/job-store.ts';
import { lockLane } from '../tasks/lane-store.ts';
import type { DeletionOption, DeletionOptions } from './seam.ts';
import { type Deletion, insertDeletion, readDeletions, readOutcomes } from './store.ts';

const nobody = { requestId: null, origin: null };

/**
 * Queues a deletion, which starts when all loads that were accepted earlier have ended. Returns the
 * job id. If the idempotency key is repeated, this is the id of the first job.
 * @throws InputError `idempotency_conflict`
 */
export async function requestDeletion(
  context: LoadContext,
  environmentId: number,
  entity: Entity,
  request: DeletionRequest,
  idempotency: Idempotency | null = null,
  from: { readonly requestId: string | null; readonly origin: Origin | null } = nobody,
): Promise<string> {
  const jobId = uuidv7();
  const answer = await inTransaction(context.pool, async ({ db }) => {
    if (idempotency !== null) {
      const { key, digest } = idempotency;
      const earlier = await claimIdempotencyKey(db, environmentId, key, digest, jobId);
      if (earlier !== null) return earlier.jobId;
    }
    // The lock prevents `retryLoad` from retrying an earlier load at the same time.
    await lockLane(db, environmentId);
    await insertDeletion(db, { jobId, ...from, environmentId, entity, ...request });
    const { ids, purgeExports, options } = request;
    await context.acts.record(db, {
      action: 'deletion.accepted',
      environmentId,
      thing: jobId,
      details: { entity, ids: ids.length, purge_exports: purgeExports, ...options },
    });
    return jobId;
  });
  if (answer !== jobId) return answer;
  context.log.info(
    { ...jobFields({ jobId, requestId: from.requestId }), entity, ids: request.ids.length },
    'deletion accepted',
  );
  startLaneSoon(context, environmentId);
  return jobId;
}

/* A request body: `{"users": ["u1", {"user_id": "u2"}, 3], "purge_exports": true}`. */

const notAnId = 'An id is a string or a number';

function id(description: string) {
  // Ids may be numbers, as in bulk data. They are converted to strings before this check.
  const text = Type.Unsafe<string>({
    type: ['string', 'number'],
    minLength: 1,
    maxLength: MAX_ID_BYTES,
    description,
  });
  const problem = (value: unknown) => textProblem(String(value), MAX_ID_BYTES);
  const wording = (value: unknown): Wording => {
    const reason = typeof value === 'string' ? problem(value) : null;
    return { message: reason === null ? notAnId : `The id ${reason}` };
  };
  const ruledText = ruled(text, (value) => {
    const reason = problem(value);
    return reason === null ? null : `The id ${reason}`;
  });
  return worded(ruledText, { wording });
}

function idsOf(entity: Entity) {
  const column = idColumn[entity];
  const item = Type.Object({ [column]: id('The same.') }, { additionalProperties: false });
  const items = worded(
    Type.Union([id('An id. A number stands for its digits, as in bulk data.'), item]),
    notAnId,
  );
  return worded(Type.Array(items, { minItems: 1, maxItems: MAX_DELETION_IDS, description: 'The ids.' }), {
    wording: (value, keyword) => {
      if (keyword !== 'maxItems') return { message: `${entity} is an array of at least one id` };
      const { length } = value as readonly unknown[];
      const message = `A deletion may name ${MAX_DELETION_IDS} ids, this one names ${length}`;
      return { code: 'too_many_records', message };
    },
  });
}

function flagsOf(entity: Entity, options: readonly DeletionOption[]) {
  const ofEntity = options.filter((option) => option.entity === entity);
  return Object.fromEntries(
    ofEntity.map(({ name, request }) => [
      name,
      Type.Optional(
        worded(Type.Boolean({ default: false, description: request }), `${name} is true or false`),
      ),
    ]),
  );
}

function bodyOf(entity: Entity, options: readonly DeletionOption[]) {
  const purge = Type.Boolean({
    default: false,
    description:
      'Also removes the files of every export of the environment, and restarts exports that are running.',
  });
  // `dry_run` is a member of the body, not a query parameter. A misspelt query parameter would be
  // ignored and the deletion would run, but a misspelt member of the body is refused.
  const dryRun = Type.Boolean({
    default: false,
    description: 'Only counts what would be removed. Nothing is removed.',
  });
  return Type.Object(
    {
      purge_exports: Type.Optional(worded(purge, 'purge_exports is true or false')),
      ...flagsOf(entity, options),
      dry_run: Type.Optional(worded(dryRun, 'dry_run is true or false')),
      [entity]: idsOf(entity),
    },
    { additionalProperties: false, description: `The ids of the ${entity} to delete.` },
  );
}

/** Schema and reader of a request body that contains ids. `read` throws InputError. */
export function idList(entity: Entity, description: string) {
  const schema = Type.Object({ [entity]: idsOf(entity) }, { additionalProperties: false, description });
  const problemsOf = compileSchema(schema);
  return { schema, read: (body: Buffer): readonly string[] => readIds(entity, body, problemsOf).ids };
}

interface DeletionRequest {
  /** Distinct ids, in the order of the request. */
  readonly ids: readonly string[];
  readonly purgeExports: boolean;
  /** A missing option is false. */
  readonly options: DeletionOptions;
}

export function deletionRequests(options: readonly DeletionOption[]) {
  const bodies = { users: bodyOf('users', options), companies: bodyOf('companies', options) };
  const problems = { users: compileSchema(bodies.users), companies: compileSchema(bodies.companies) };
  return {
    bodies,
    /** @throws InputError that lists all problems */
    read(entity: Entity, body: Buffer): DeletionRequest & { readonly dryRun: boolean } {
      const { ids, flags } = readIds(entity, body, problems[entity]);
      const { purge_exports: purgeExports = false, dry_run: dryRun = false } = flags;
      const values = Object.fromEntries(options.map(({ name }) => [name, flags[name] === true]));
      return { ids, purgeExports, options: values, dryRun };
    },
  };
}
export type DeletionRequests = ReturnType<typeof deletionRequests>;

function readIds(entity: Entity, body: Buffer, problemsOf: ReturnType<typeof compileSchema>) {
  const { [entity]: members, ...others } = readObject(body);
  const items = Array.isArray(members) ? members.map(plain) : members;
  throwProblems(problemsOf(items === undefined || items === null ? others : { ...others, [entity]: items }));
  const column = idColumn[entity];
  const ids = (items as (string | Record<string, string>)[]).map((item) =>
    typeof item === 'string' ? item : (item[column] ?? ''),
  );
  return { ids: [...new Set(ids)], flags: others as Readonly<Record<string, boolean>> };
}

const findProblems = {
  users: compileSchema(Type.Object({ users: idsOf('users') })),
  companies: compileSchema(Type.Object({ companies: idsOf('companies') })),
} as const satisfies Record<Entity, unknown>;

/** Checks ids that do not come from a JSON body, and removes duplicates. @throws InputError */
export function checkIds(entity: Entity, texts: readonly string[]): string[] {
  throwProblems(findProblems[entity]({ [entity]: texts }));
  return [...new Set(texts)];
}

function readObject(body: Buffer): Record<string, unknown> {
  if (body.length === 0) throw inputError('invalid_json', 'The request has no body');
  if (!isUtf8(body)) throw inputError('invalid_json', 'The body is not valid UTF-8');
  const text = body.toString('utf8');
  const parsed = parseJsonText(text.startsWith('\ufeff') ? text.slice(1) : text);
  if ('code' in parsed) throw inputError('invalid_json', 'The body is not JSON', parsed.message);
  if (isObject(parsed.value)) return parsed.value;
  throw inputError('invalid_field', 'The body must be a JSON object');
}

function plain(item: unknown): unknown {
  if (!isObject(item)) return digits(item);
  const members = Object.entries(item).filter(([, value]) => value !== null);
  return Object.fromEntries(members.map(([name, value]) => [name, digits(value)]));
}

function digits(value: unknown): unknown {
  return typeof value === 'number' ? String(value) : (markedNumber(value) ?? value);
}

interface Context {
  readonly db: Database;
}

/** @throws InputError `not_found`, also for jobs of another environment or type */
export async function requireDeletion(
  { db }: Context,
  environmentId: number,
  jobId: string,
): Promise<Deletion> {
  const [deletion] = await readDeletions(db, environmentId, [jobId]);
  if (deletion === undefined) throw inputError('not_found', 'There is no such deletion', `job_id: ${jobId}`);
  return deletion;
}

/** Lists outcomes in the order of the request. @throws InputError `not_found` */
export async function listOutcomes(
  context: Context,
  environmentId: number,
  jobId: string,
  page: { readonly limit: number; readonly after: number },
) {
  const { deletionId, counts } = await requireDeletion(context, environmentId, jobId);
  const rows = await readOutcomes(context.db, deletionId, page.after, page.limit + 1);
  const outcomes = rows.slice(0, page.limit);
  return { outcomes, total: counts.requested, more: rows.length > page.limit };
}

const rowsAtATime = 1_000;
const columns = ['id', 'outcome', 'events', 'users'] as const;

/** @throws InputError `not_found` */
export async function* exportOutcomes(
  context: Context,
  environmentId: number,
  jobId: string,
  format: 'csv' | 'ndjson',
): AsyncGenerator<Buffer> {
  const { deletionId } = await requireDeletion(context, environmentId, jobId);
  if (format === 'csv') yield Buffer.from(`${columns.join(',')}\n`);
  const line = format === 'csv' ? csvLine : jsonLine;
  const read = async (after: number) => {
    const rows = await readOutcomes(context.db, deletionId, after, rowsAtATime + 1);
    return takePage(rows, rowsAtATime, ({ position }) => position);
  };
  for await (const { items } of walkPages(0, read)) {
    if (items.length > 0) yield Buffer.from(items.map(line).join(''));
  }
}

function csvLine(item: IdOutcome): string {
  return `${columns.map((column) => csvCell(defuse(String(item[column])), ',')).join(',')}\n`;
}

function jsonLine(item: IdOutcome): string {
  return `${JSON.stringify(renderOutcome(item))}\n`;
}

export function renderDeletionDetail(deletion: Deletion, history: JobHistory, baseUrl: string) {
  const { status, counts } = deletion;
  const item = renderJobListItem(deletion, baseUrl, new Date());
  const ended = counts.deleted + counts.not_found;
  return {
    ...renderRun({ ...deletion, ...history, sources: [], files: [], rejects: noRejects, cursor: null }),
    ...item,
    completed_rows: ended,
    // The progress is at most 0.99 until the job is completed, because files are removed after the
    // last id.
    progress: status === 'completed' ? 1 : Math.min(0.99, Math.floor((ended / counts.requested) * 100) / 100),
    removed: deletion.removed,
    purge_exports: deletion.purgeExports,
    ...deletion.options,
    outcomes: { links: `${item.links}/outcomes` },
    last_error: deletion.lastError,
    attempts: deletion.attempts,
    queue_position: deletion.queuePosition,
  };
}

export function renderOutcome({ id, outcome, events, users }: IdOutcome) {
  return { id, outcome, events, users };
}

import { isUtf8 } from 'node:buffer';
import { Type } from 'typebox';
import { uuidv7 } from 'uuidv7';
import { type Entity, idColumn } from '../domain/entity.ts';
import { idempotencyConflict, inputError } from '../domain/errors.ts';
import { MAX_DELETION_IDS, MAX_ID_BYTES } from '../domain/limits.ts';
import { jobFields, type Origin } from '../domain/task.ts';
import type { Idempotency } from '../ingest/records.ts';
import type { LoadContext } from '../load/context.ts';
import { startLaneSoon } from '../load/end-load.ts';
import { isObject, markedNumber, parseJsonText } from '../mapping/json-text.ts';
import { inTransaction } from '../postgres/database.ts';
import { keepTrace } from '../postgres/stores/background-jobs.ts';
import { insertDeletion } from '../postgres/stores/deletions.ts';
import { claimIdempotencyKey } from '../postgres/stores/idempotency.ts';
import { lockLane } from '../postgres/stores/lanes.ts';
import { compileSchema, ruled, textProblem, throwProblems, type Wording, worded } from '../validation.ts';

const nobody = { requestId: null, origin: null };

/**
 * Accepts a deletion: ledger first, behind every load that is accepted, then the queue. Returns its job id; that of the
 * first one, if the same idempotency key asked before. Throws `InputError` `idempotency_conflict`.
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
      const claim = await claimIdempotencyKey(db, environmentId, key, digest, jobId);
      if (claim.outcome === 'known' && claim.jobId !== null) return claim.jobId;
      if (claim.outcome !== 'claimed') throw idempotencyConflict();
    }
    // Nobody retries an earlier load from now on: see `retryLoad`.
    await lockLane(db, environmentId);
    await insertDeletion(db, { jobId, ...from, environmentId, entity, ...request });
    await keepTrace(db, context.tracing, jobId);
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

/* The body of a request: `{"users": ["u1", {"user_id": "u2"}, 3], "purge_exports": true}`, or the same for companies. */

const notAnId = 'An id is a string or a number';

function id(description: string) {
  // Numbers are the ids that bulk data makes of them, and are texts before they come here.
  const text = Type.Unsafe<string>({
    type: ['string', 'number'],
    minLength: 1,
    maxLength: MAX_ID_BYTES,
    description,
  });
  const problem = (value: unknown) => textProblem(String(value), MAX_ID_BYTES);
  const says = (value: unknown): Wording => {
    const reason = typeof value === 'string' ? problem(value) : null;
    return { message: reason === null ? notAnId : `The id ${reason}` };
  };
  const ruledText = ruled(text, (value) => {
    const reason = problem(value);
    return reason === null ? null : `The id ${reason}`;
  });
  return worded(ruledText, { says });
}

function bodyOf(entity: Entity) {
  const column = idColumn[entity];
  const item = Type.Object({ [column]: id('The same.') }, { additionalProperties: false });
  const items = worded(
    Type.Union([
      id('An id. A number stands for its digits, as in bulk data.'),
      worded(item, { unknown: () => `An item has ${column} and nothing else` }),
    ]),
    notAnId,
  );
  const ids = worded(
    Type.Array(items, { minItems: 1, maxItems: MAX_DELETION_IDS, description: 'The ids.' }),
    {
      says: (value, keyword) => {
        if (keyword !== 'maxItems') return { message: `${entity} is an array of at least one id` };
        const { length } = value as readonly unknown[];
        const message = `A deletion may name ${MAX_DELETION_IDS} ids, this one names ${length}`;
        return { code: 'too_many_records', message };
      },
    },
  );
  const purge = Type.Boolean({
    default: false,
    description:
      'Also removes the files of every export of the environment, and lets exports under way begin anew.',
  });
  return Type.Object(
    { purge_exports: Type.Optional(worded(purge, 'purge_exports is true or false')), [entity]: ids },
    { additionalProperties: false, description: `The ids of the ${entity} to delete.` },
  );
}

export const deletionBodies = { users: bodyOf('users'), companies: bodyOf('companies') };

const findProblems = {
  users: compileSchema(deletionBodies.users),
  companies: compileSchema(deletionBodies.companies),
} as const satisfies Record<Entity, unknown>;

interface DeletionRequest {
  /** Each once, in the order in which they came. */
  readonly ids: readonly string[];
  readonly purgeExports: boolean;
}

/** @throws InputError with everything that is wrong: `invalid_json`, `missing_field`, `invalid_field`, `too_many_records`. */
export function readDeletionRequest(entity: Entity, body: Buffer): DeletionRequest {
  const { [entity]: given, ...others } = readObject(body);
  const items = Array.isArray(given) ? given.map(plain) : given;
  const asked = items === undefined || items === null ? others : { ...others, [entity]: items };
  throwProblems(findProblems[entity](asked));
  const { purge_exports: purge = false } = others as { readonly purge_exports?: boolean };
  const column = idColumn[entity];
  const ids = (items as (string | Record<string, string>)[]).map((item) =>
    typeof item === 'string' ? item : (item[column] ?? ''),
  );
  return { ids: [...new Set(ids)], purgeExports: purge };
}

/** Like `readDeletionRequest`, of ids that were not given as JSON. */
export function checkIds(entity: Entity, given: readonly string[]): string[] {
  throwProblems(findProblems[entity]({ [entity]: given }));
  return [...new Set(given)];
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

/** An item with its id as a text, where it is a number; without it, where it is null. */
function plain(item: unknown): unknown {
  if (!isObject(item)) return digits(item);
  const members = Object.entries(item).filter(([, value]) => value !== null);
  return Object.fromEntries(members.map(([name, value]) => [name, digits(value)]));
}

function digits(value: unknown): unknown {
  return typeof value === 'number' ? String(value) : (markedNumber(value) ?? value);
}

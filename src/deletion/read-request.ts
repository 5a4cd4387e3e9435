import { isUtf8 } from 'node:buffer';
import { type Entity, idColumn } from '../domain/entity.ts';
import { InputError, inputError, type Problem } from '../domain/errors.ts';
import { MAX_DELETION_IDS, MAX_ID_BYTES } from '../domain/limits.ts';
import { textProblem } from '../export/text-problem.ts';
import { isObject } from '../mapping/json-object.ts';
import { markedNumber, parseJsonText } from '../mapping/json-text.ts';

/** What a deletion is asked for. */
export interface DeletionRequest {
  /** Each once, in the order in which they came. */
  readonly ids: readonly string[];
  readonly purgeExports: boolean;
}

const byteOrderMark = '\ufeff';
/** Of a body that is wrong all over nobody reads more. */
const maxProblems = 100;

/**
 * Reads `{"users": ["u1", {"user_id": "u2"}, 3], "purge_exports": true}`, or the same of companies. Numbers become the
 * ids that bulk data makes of them, digit for digit.
 * @throws InputError with everything that is wrong: `invalid_json`, `missing_field`, `invalid_field`, `too_many_records`.
 */
export function readDeletionRequest(entity: Entity, body: Buffer): DeletionRequest {
  const { [entity]: given, purge_exports: purge = false, ...unknown } = readObject(body);
  const problems: Problem[] = Object.keys(unknown).map((name) =>
    wrong('There is no such field', name.slice(0, 100).toWellFormed()),
  );
  if (typeof purge !== 'boolean') problems.push(wrong('purge_exports is true or false', 'purge_exports'));
  const ids = readIds(entity, given, problems);
  const [first, ...more] = problems;
  if (first !== undefined) throw new InputError(first, ...more.slice(0, maxProblems - 1));
  return { ids, purgeExports: purge === true };
}

/** As `readDeletionRequest`, of ids that were not given as JSON. */
export function checkIds(entity: Entity, given: readonly string[]): string[] {
  const problems: Problem[] = [];
  const ids = readIds(entity, given, problems);
  const [first, ...more] = problems;
  if (first !== undefined) throw new InputError(first, ...more.slice(0, maxProblems - 1));
  return ids;
}

function readObject(body: Buffer): Record<string, unknown> {
  if (body.length === 0) throw inputError('invalid_json', 'The request has no body');
  if (!isUtf8(body)) throw inputError('invalid_json', 'The body is not valid UTF-8');
  const text = body.toString('utf8');
  const parsed = parseJsonText(text.startsWith(byteOrderMark) ? text.slice(1) : text);
  if ('code' in parsed) throw inputError('invalid_json', 'The body is not JSON', parsed.message);
  if (isObject(parsed.value)) return parsed.value;
  throw inputError('invalid_field', 'The body must be a JSON object');
}

function readIds(entity: Entity, given: unknown, problems: Problem[]): string[] {
  if (given === undefined || given === null) {
    problems.push({ code: 'missing_field', message: `${entity} is missing`, details: entity });
    return [];
  }
  if (!Array.isArray(given) || given.length === 0) {
    problems.push(wrong(`${entity} is an array of at least one id`, entity));
    return [];
  }
  if (given.length > MAX_DELETION_IDS) {
    const message = `A deletion may name ${MAX_DELETION_IDS} ids, this one names ${given.length}`;
    problems.push({ code: 'too_many_records', message, details: entity });
    return [];
  }
  const ids = given.map((item, index) => readId(entity, item, `${entity}[${index}]`, problems));
  return [...new Set(ids)];
}

function readId(entity: Entity, item: unknown, path: string, problems: Problem[]): string {
  const column = idColumn[entity];
  if (isObject(item)) {
    const { [column]: id, ...others } = item;
    for (const name of Object.keys(others)) {
      problems.push(
        wrong(`An item has ${column} and nothing else`, `${path}.${name.slice(0, 100).toWellFormed()}`),
      );
    }
    if (id !== undefined && id !== null) return readText(id, `${path}.${column}`, problems);
    problems.push({
      code: 'missing_field',
      message: `${column} is missing`,
      details: `${path}.${column}`,
    });
    return '';
  }
  return readText(item, path, problems);
}

function readText(value: unknown, path: string, problems: Problem[]): string {
  const text = typeof value === 'number' ? String(value) : (markedNumber(value) ?? value);
  if (typeof text !== 'string') {
    problems.push(wrong('An id is a string or a number', path));
    return '';
  }
  const problem = textProblem(text, MAX_ID_BYTES);
  if (problem !== null) problems.push(wrong(`The id ${problem}`, path));
  return text;
}

function wrong(message: string, details: string): Problem {
  return { code: 'invalid_field', message, details };
}

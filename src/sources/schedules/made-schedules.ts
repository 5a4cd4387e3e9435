import { isAbsolute } from 'node:path';
import type { Config } from '../../config.ts';
import { definedByFile } from '../../domain/definitions.ts';
import { inputError, type Problem } from '../../domain/errors.ts';
import { MAX_MADE_SCHEDULE_BYTES, MAX_MADE_SCHEDULES } from '../../domain/limits.ts';
import type { Database } from '../../postgres/database.ts';
import type { Environment } from '../../postgres/stores/environments.ts';
import { deleteMade, keepMade, readMade } from '../../postgres/stores/schedules.ts';
import { throwProblems } from '../../validation.ts';
import { grantOf } from './context.ts';
import { readSchedulesFile, readSchedulesNow } from './schedules-file.ts';
import type { LoadDefinition, Schedule } from './schedules-schema.ts';
import { fillInAnything, namedVariables } from './source.ts';

/*
 * Schedules that the API keeps. They are held to the rules of the file and, since whoever has a key may write them, to their
 * environment: its folders, the variables that an operator grants it, and no secret in clear. The file wins: a name that it has
 * is its own.
 */

type Limits = Pick<Config, 'schedulesLocalRoots' | 'schedulesExportRoots' | 'schedulesVariables'>;

/** Reads a schedule of an environment from JSON, as the file would have it. @throws InputError with every problem */
export function readMadeSchedule(
  given: Readonly<Record<string, unknown>>,
  environment: string,
  limits: Limits,
): Schedule {
  const text = JSON.stringify({ schedules: [{ ...given, environment }] });
  if (Buffer.byteLength(text) > MAX_MADE_SCHEDULE_BYTES) {
    throw inputError('invalid_field', `a schedule has at most ${MAX_MADE_SCHEDULE_BYTES} bytes`);
  }
  const { value, problems } = readSchedulesFile(Buffer.from(text));
  throwProblems([
    ...problems.map(({ path, message }) => inOne(path, message)),
    ...('environment' in given ? [problem('environment', 'is that of the caller; leave it out')] : []),
  ]);
  const [schedule] = value ?? [];
  if (schedule === undefined) throw inputError('invalid_field', 'this is no schedule');
  checkConfined(schedule, limits);
  return schedule;
}

/** Words a problem of a file of one schedule as one of that schedule. */
function inOne(path: string, message: string): Problem {
  const place = /^schedules\[0\]\.?/;
  const details = path.replace(place, '');
  const says = details === '' ? message.replace(place, 'the schedule') : message.replace(place, '');
  return { code: 'invalid_field', message: says, details };
}

function problem(path: string, what: string): Problem {
  return { code: 'invalid_field', message: `${path} ${what}`, details: path };
}

/** Refuses what would lead out of the environment, or keep a secret. @throws InputError with every problem */
export function checkConfined({ environment, load, export: exported }: Schedule, limits: Limits): void {
  const variables = namedVariables(JSON.stringify(load ?? {}));
  throwProblems([
    ...variables
      .map((name) => grantOf(environment, name))
      .filter((grant) => !limits.schedulesVariables.includes(grant))
      .map((grant) => problem('load', `names a variable that SCHEDULES_VARIABLES does not grant: ${grant}`)),
    ...(load === undefined ? [] : findClearSecrets(load)),
    ...folderProblems('load.files.pattern', load?.files?.pattern, limits.schedulesLocalRoots, 'LOCAL'),
    ...folderProblems('export.to_dir', exported?.to_dir, limits.schedulesExportRoots, 'EXPORT'),
  ]);
}

/** Headers that hold no secret. */
const plainHeaders: ReadonlySet<string> = new Set(['accept', 'accept-language', 'user-agent']);
const secretParameter =
  /[?&]([^=&#]*(?:token|secret|passw|signature|api.?key|credential)[^=&#]*|key|sig)=([^&#]*)/gi;
const asVariable = `must be a variable such as \${env:SCHEDULE_TOKEN}, so that no secret is stored`;

function findClearSecrets({ http, s3 }: LoadDefinition): Problem[] {
  const holdsVariable = (text = ''): boolean => namedVariables(text).length > 0;
  const isVariable = (text = ''): boolean => holdsVariable(text) && fillInAnything(text) === 'x';
  const url = http?.url ?? '';
  const headers = Object.entries(http?.headers ?? {});
  const keys = s3 === undefined ? [] : (['access_key', 'secret_key'] as const);
  // Messages name the host.
  const isHidden = /^[^/]*\/\/[^/?#]*\$\{/.test(url);
  return [
    ...(isHidden ? [problem('load.http.url', 'must not hold a variable in its host')] : []),
    ...headers
      .filter(([name, value]) => !plainHeaders.has(name.toLowerCase()) && !holdsVariable(value))
      .map(([name]) => problem(`load.http.headers.${name}`, asVariable.replace('be', 'hold'))),
    ...[...url.matchAll(secretParameter)]
      .filter(([, , value]) => !holdsVariable(value))
      .map(([, name]) => problem('load.http.url', `has a secret, it seems; ${name} ${asVariable}`)),
    ...keys.filter((name) => !isVariable(s3?.[name])).map((name) => problem(`load.s3.${name}`, asVariable)),
  ];
}

function folderProblems(
  path: string,
  given: string | undefined,
  roots: readonly string[],
  which: 'LOCAL' | 'EXPORT',
): Problem[] {
  if (given === undefined) return [];
  if (roots.length === 0) return [problem(path, `needs SCHEDULES_${which}_ROOTS, which is not set here`)];
  return isAbsolute(given)
    ? [problem(path, `must not begin with /: it is below the environment's folder`)]
    : [];
}

/** Returns a kept definition as a schedule of its environment. */
export function toMade(definition: object, environment: string): Schedule {
  return { ...definition, environment, isMade: true } as Schedule;
}

/** All schedules: those of the file, and those of the API whose names the file does not have. */
export function withMade(
  ofFile: readonly Schedule[],
  made: Awaited<ReturnType<typeof readMade>>,
): readonly Schedule[] {
  const keyOf = ({ environment, name }: Schedule): string => `${environment}/${name}`;
  const taken = new Set(ofFile.map(keyOf));
  const others = made.map(({ environment, definition }) => toMade(definition, environment));
  return [...ofFile, ...others.filter((schedule) => !taken.has(keyOf(schedule)))];
}

interface Context {
  readonly db: Database;
  readonly config: Pick<Config, 'schedulesFile'>;
}

/** Keeps a schedule: a new one, one in place of another, or either. @throws InputError `definition_locked`, `not_found`, `invalid_field` */
export async function keepSchedule(
  { db, config }: Context,
  { environmentId, name: environment }: Pick<Environment, 'environmentId' | 'name'>,
  schedule: Schedule,
  which: 'new' | 'known' | 'either',
): Promise<void> {
  const { environment: _, isMade: __, ...definition } = schedule;
  const { name } = definition;
  await refuseOfFile(config, environment, name);
  const now = new Date();
  if (which !== 'new' && (await keepMade(db, environmentId, definition, { isNew: false, now }))) return;
  if (which === 'known') throw noSchedule(name);
  if ((await readMade(db, environmentId)).length >= MAX_MADE_SCHEDULES) {
    const message = `an environment has at most ${MAX_MADE_SCHEDULES} schedules beside those of the file`;
    throw inputError('invalid_field', message, 'name');
  }
  if (await keepMade(db, environmentId, definition, { isNew: true, now })) return;
  throw inputError('invalid_field', `there is a schedule ${name}; choose another name`, 'name');
}

/** @throws InputError `definition_locked`, `not_found` */
export async function removeSchedule(
  { db, config }: Context,
  { environmentId, name: environment }: Pick<Environment, 'environmentId' | 'name'>,
  name: string,
): Promise<void> {
  await refuseOfFile(config, environment, name);
  const isGone = await db.transaction().execute((own) => deleteMade(own, environmentId, name));
  if (!isGone) throw noSchedule(name);
}

export function noSchedule(name: string) {
  return inputError(
    'not_found',
    'there is no such schedule',
    `schedule: ${name.slice(0, 100).toWellFormed()}`,
  );
}

async function refuseOfFile(
  { schedulesFile }: Context['config'],
  environment: string,
  name: string,
): Promise<void> {
  const { schedules } = await readSchedulesNow(schedulesFile);
  // Workers go on with what it said before, which may be this name.
  if (schedules === null)
    throw inputError('definition_locked', 'The schedules file is wrong: correct it first', name);
  if (!schedules.some((each) => each.environment === environment && each.name === name)) return;
  throw definedByFile('schedule', name);
}

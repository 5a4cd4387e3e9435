import { isAbsolute } from 'node:path';
import type { Config } from '../../base/config.ts';
import type { Place } from '../../base/operator-file/read.ts';
import type { Keys } from '../../base/operator-file/schema.ts';
import { grantOf } from './context.ts';
import type { LoadDefinition, ScheduleDefinition } from './schema.ts';
import { placeholders, SourceFailure } from './source.ts';
import { type Commands, commandProblem, readCommands } from './source-command.ts';

/**
 * Access granted to an environment's schedules. Anyone with a key may write schedules, so access is
 * checked both when a schedule is stored and when it runs. A schedule does not store secrets.
 */
export interface Confinement {
  readonly environment: string;
  readonly granted: readonly string[];
  readonly localRoots: readonly string[];
  readonly exportRoots: readonly string[];
  /**
   * The allowed commands, or the failure to read them. The failure affects only schedules that use
   * a command.
   */
  readonly commands: Commands | SourceFailure;
}

type Settings = Pick<
  Config,
  'schedulesVariables' | 'schedulesLocalRoots' | 'schedulesExportRoots' | 'sourceCommands'
>;

export async function confinementOf(config: Settings, environment: string): Promise<Confinement> {
  return {
    environment,
    granted: config.schedulesVariables,
    localRoots: config.schedulesLocalRoots,
    exportRoots: config.schedulesExportRoots,
    commands: await readCommands(config.sourceCommands, environment).catch((error: unknown) => {
      if (error instanceof SourceFailure) return error;
      throw error;
    }),
  };
}

interface Finding {
  readonly keys: Keys;
  readonly what: string;
}

export function reportUnconfined(
  place: Place,
  { load, export: exported }: Pick<ScheduleDefinition, 'load' | 'export'>,
  { environment, granted, localRoots, exportRoots, commands }: Confinement,
): void {
  const ungranted = placeholders
    .namesIn(JSON.stringify(load ?? {}))
    .map((name) => grantOf(environment, name))
    .filter((grant) => !granted.includes(grant));
  const command = load?.command && commandProblem(commands, load.command);
  const findings: readonly Finding[] = [
    ...ungranted.map((grant) => ({
      keys: ['load'],
      what: `names a variable that SCHEDULES_VARIABLES does not grant: ${grant}`,
    })),
    ...(load === undefined ? [] : findClearSecrets(load)),
    ...folderFindings(['load', 'files', 'pattern'], load?.files?.pattern, localRoots, 'LOCAL'),
    ...folderFindings(['export', 'to_dir'], exported?.to_dir, exportRoots, 'EXPORT'),
    ...(command == null ? [] : [{ keys: ['load', 'command'], what: `is refused: ${command.message}` }]),
  ];
  for (const { keys, what } of findings) place.at(keys).report(what);
}

const plainHeaders: ReadonlySet<string> = new Set(['accept', 'accept-language', 'user-agent']);
const asVariable = `must be a variable of the workers such as \${env:SCHEDULE_TOKEN}, so that no secret is stored`;

function findClearSecrets({ http, s3 }: LoadDefinition): Finding[] {
  const hasVariable = (text: string): boolean => placeholders.namesIn(text).length > 0;
  const url = http?.url ?? '';
  const urlKeys = ['load', 'http', 'url'];
  const headers = Object.entries(http?.headers ?? {});
  const bucketKeys = s3 === undefined ? [] : (['access_key', 'secret_key'] as const);
  return [
    // Messages contain the host, so it must not be secret.
    ...(placeholders.isInHost(url) ? [{ keys: urlKeys, what: 'must not hold a variable in its host' }] : []),
    ...headers
      .filter(([name, value]) => !plainHeaders.has(name.toLowerCase()) && !hasVariable(value))
      .map(([name]) => ({
        keys: ['load', 'http', 'headers', name],
        what: asVariable.replace('be', 'hold'),
      })),
    ...placeholders
      .cleartextSecretsIn(url)
      .map((name) => ({ keys: urlKeys, what: `has a secret, it seems; ${name} ${asVariable}` })),
    ...bucketKeys
      .filter((name) => !placeholders.isOne(s3?.[name] ?? ''))
      .map((name) => ({ keys: ['load', 's3', name], what: asVariable })),
  ];
}

function folderFindings(
  keys: Keys,
  path: string | undefined,
  roots: readonly string[],
  which: 'LOCAL' | 'EXPORT',
): Finding[] {
  if (path === undefined) return [];
  if (roots.length === 0) return [{ keys, what: `needs SCHEDULES_${which}_ROOTS, which is not set here` }];
  return isAbsolute(path)
    ? [{ keys, what: `must not begin with /: it is below the environment's folder` }]
    : [];
}

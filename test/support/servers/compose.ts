import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';

export const repository = resolve(import.meta.dirname, '../../..');

/**
 * The fields of a service that docker-compose.yml may use. test/integration/packaging.test.ts fails
 * if the file has any other field.
 */
export interface Service {
  readonly image: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly env_file?: readonly ['compose.env'];
  /** Environment variables, including those from `env_file`. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly networks: readonly string[];
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly restart: string;
  readonly stop_grace_period?: string;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly secrets?: readonly string[];
  readonly logging?: object;
  readonly deploy?: { readonly resources?: { readonly limits: { readonly memory: string } } };
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, object>>;
  readonly volumes: Readonly<Record<string, object>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

/**
 * Returns the compose file as compose reads it, with YAML merge keys and variables resolved. Throws
 * if compose would refuse the file.
 */
export async function readCompose(
  variables: Readonly<Record<string, string>>,
  name = 'docker-compose.yml',
): Promise<ComposeFile> {
  const text = await readFile(join(repository, name), 'utf8');
  const file = interpolate(parse(text, { merge: true }), variables) as ComposeFile;
  const services = Object.entries(file.services).map(([name, service]) => {
    const settings = service.env_file ? { ...variables, ...service.environment } : service.environment;
    return [name, settings ? { ...service, environment: settings } : service];
  });
  return { ...file, services: Object.fromEntries(services) };
}

export async function exampleVariables(): Promise<Record<string, string>> {
  const text = await readFile(join(repository, 'compose.env.example'), 'utf8');
  const lines = text.split('\n').filter((line) => /^[A-Z]/.test(line));
  return Object.fromEntries(lines.map((line) => /^(\w+)=(.*)$/.exec(line)?.slice(1) ?? [line, '']));
}

/**
 * Runs, in `folder`, the script with which users create secrets. Returns the subfolder that
 * containers mount as /run/secrets.
 */
export async function makeSecrets(folder: string): Promise<string> {
  await promisify(execFile)('sh', [join(repository, 'examples/compose/make-secrets.sh')], { cwd: folder });
  return join(folder, 'secrets');
}

/** Replaces /run/secrets with the folder `secrets`. */
export function withSecrets(environment: Service['environment'], secrets: string): Record<string, string> {
  const entries = Object.entries(environment ?? {});
  return Object.fromEntries(entries.map(([name, value]) => [name, value.replace('/run/secrets', secrets)]));
}

const pattern = /\$(?:(\$)|\{([A-Z_]+)(?:(:[-?])([^}]*))?\}|([A-Z_]+)|(.?))/g;

function interpolate(value: unknown, variables: Readonly<Record<string, string>>): unknown {
  if (Array.isArray(value)) return value.map((each) => interpolate(each, variables));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, interpolate(v, variables)]));
  if (typeof value !== 'string') return value;
  return value.replace(pattern, (whole, dollar, braced, operator, rest, bare) => {
    if (dollar !== undefined) return '$';
    const name: string | undefined = braced ?? bare;
    if (name === undefined) throw new Error(`${whole} is no variable; a dollar is written $$`);
    const value = variables[name] ?? '';
    if (value === '' && operator === ':?') throw new Error(`required variable ${name}: ${rest}`);
    return value === '' && operator === ':-' ? rest : value;
  });
}

/** Returns the instructions of the Dockerfile, grouped by stage. Joins continued lines. */
export async function readDockerfile(): Promise<
  readonly { readonly name: string; readonly instructions: readonly (readonly [string, string])[] }[]
> {
  const text = await readFile(join(repository, 'Dockerfile'), 'utf8');
  const lines = text
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '');
  const stages: { name: string; instructions: [string, string][] }[] = [];
  for (const line of lines) {
    const [instruction = '', ...rest] = line.split(' ');
    const text = rest.join(' ');
    if (instruction === 'FROM') stages.push({ name: / AS (\w+)/.exec(text)?.[1] ?? '', instructions: [] });
    stages.at(-1)?.instructions.push([instruction, text]);
  }
  return stages;
}

/**
 * Returns the arguments of the instruction with this name. Throws unless the stage contains the
 * instruction exactly once.
 */
export function only(instructions: readonly (readonly [string, string])[], name: string): string {
  const matches = instructions.filter(([instruction]) => instruction === name);
  if (matches[0] === undefined || matches.length > 1) throw new Error(`${matches.length} × ${name}`);
  return matches[0][1];
}

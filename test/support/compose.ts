import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';

/** The folder of docker-compose.yml and the Dockerfile. */
export const repository = resolve(import.meta.dirname, '../..');

/** A service as far as ours use the format; test/integration/packaging.test.ts refuses whatever else stands in the file. */
export interface Service {
  readonly image: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly env_file?: readonly ['compose.env'];
  /** With what stands in `env_file`. */
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

/** What compose would work with: merged and interpolated. Throws where compose would refuse. */
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

/** What compose.env.example sets. */
export async function exampleVariables(): Promise<Record<string, string>> {
  const text = await readFile(join(repository, 'compose.env.example'), 'utf8');
  const lines = text.split('\n').filter((line) => /^[A-Z]/.test(line));
  return Object.fromEntries(lines.map((line) => /^(\w+)=(.*)$/.exec(line)?.slice(1) ?? [line, '']));
}

/** Makes the secrets as a user would, in a folder; returns the folder that containers see as /run/secrets. */
export async function makeSecrets(folder: string): Promise<string> {
  await promisify(execFile)('sh', [join(repository, 'examples/compose/make-secrets.sh')], { cwd: folder });
  return join(folder, 'secrets');
}

/** Variables of a container whose secrets are in this folder of ours. */
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
    const given = variables[name] ?? '';
    if (given === '' && operator === ':?') throw new Error(`required variable ${name}: ${rest}`);
    return given === '' && operator === ':-' ? rest : given;
  });
}

/** Instructions of the Dockerfile, by stage; lines that go on are joined. */
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

/** The rest of an instruction; throws if the stage has none or several. */
export function only(instructions: readonly (readonly [string, string])[], name: string): string {
  const found = instructions.filter(([instruction]) => instruction === name);
  if (found[0] === undefined || found.length > 1) throw new Error(`${found.length} × ${name}`);
  return found[0][1];
}

/** `sluice api`: sends one request to the service. */
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import type { Config } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import { defineCommand, flag, type Invocation, repeated, several, text } from '../cli/define-command.ts';
import { CommandFailed, exitCodes, UsageError } from '../cli/errors.ts';
import { withEnvironment } from '../cli/session.ts';
import { readSettings } from '../cli/settings.ts';
import { defaultEnvironmentName } from '../domain/caller.ts';
import { dropKey, issueKey } from './acts.ts';

interface ApiRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readable | string | null;
}

/**
 * Time after which the key of this command expires. The command cannot delete the key if its
 * process is killed.
 */
const keyMs = 24 * 60 * 60 * 1000;

export const api = defineCommand({
  name: 'api',
  summary: 'send a request to the API of the service and print the answer',
  description:
    'Sends a request to the API with the address and a key of the service, and prints the body of the answer. The address is\n' +
    'PUBLIC_URL, or HOST and PORT. The key is API_KEY, or one that is made for this call in the database and removed after it.\n' +
    'docs/api.md lists the paths.',
  argument: several(
    '<request...>',
    'METHOD and PATH, or PATH alone: GET, or POST if there are fields or a file',
  ),
  options: {
    field: repeated(
      '-f, --field <key=value>',
      'a text of the JSON body, or of the query of a GET; repeatable',
    ),
    json: repeated('-F, --json-field <key=json>', 'the same with a number, true, null, a list …; repeatable'),
    input: text('--input <file>', 'send this file as the body; - for standard input'),
    header: repeated('-H, --header <name: value>', 'a header; repeatable'),
    paginate: flag('--paginate', 'follow the links to all pages; prints one page a line'),
  },
  environment: true,
  details: `Exit code: 0; 1 if the service refuses the request (the body says why) or does
not answer; 2 if the command line is wrong.`,
  examples: [
    'sluice api v1/users/u1',
    "sluice api v1/users -f property=plan:pro --paginate | jq -c '.data[]'",
    'sluice api POST v1/identify -f user_id=u1 -F metadata=\'{"plan": "pro"}\'',
    'sluice api POST v1/imports --input users.csv',
    'sluice api DELETE v1/users/u1',
  ],
  run: async (invocation) => {
    const { cli, command, argument, flags, env } = invocation;
    const { config } = readSettings(cli, command);
    const [path = '', method = null, ...others] = [...argument].reverse();
    if (others.length > 0) throw new UsageError('Name a method and a path: sluice api GET v1/users/u1');
    const request = readRequest(method, path, config, flags);
    if (config.apiKey !== null && env === defaultEnvironmentName)
      return answer(invocation, request, config.apiKey, flags.paginate);
    await withEnvironment(invocation, async ({ system, environmentId, database }) => {
      if (database.embedded !== null)
        throw new CommandFailed(`Nothing runs on ${config.dataDir}. Run \`sluice start\` there first.`);
      const expiresAt = new Date(Date.now() + keyMs);
      const { key, keyId } = await issueKey(system, environmentId, { label: 'sluice api', expiresAt });
      try {
        await answer(invocation, request, key, flags.paginate);
      } finally {
        await dropKey(system, environmentId, keyId);
      }
    });
  },
});

interface RequestFlags {
  readonly field: readonly string[];
  readonly json: readonly string[];
  readonly input: string | undefined;
  readonly header: readonly string[];
}

function readRequest(
  word: string | null,
  path: string,
  config: Config,
  { field, json, input, header }: RequestFlags,
): ApiRequest {
  const fields = {
    ...Object.fromEntries(field.map((each) => split(each, '=', '-f'))),
    ...Object.fromEntries(json.map(readJsonField)),
  };
  const hasFields = Object.keys(fields).length > 0;
  const method = word?.toUpperCase() ?? (hasFields || input !== undefined ? 'POST' : 'GET');
  if (!/^[A-Z]+$/.test(method)) throw new UsageError(`${JSON.stringify(word)} is not a method.`);
  const url = resolvePath(serviceUrl(config), path);
  const isQuery = method === 'GET' || method === 'HEAD' || input !== undefined;
  if (isQuery)
    for (const [name, value] of Object.entries(fields))
      url.searchParams.append(name, typeof value === 'string' ? value : JSON.stringify(value));
  const headers = Object.fromEntries(header.map((each) => split(each, ':', '-H')));
  if (input !== undefined) {
    const body = input === '-' ? process.stdin : createReadStream(input);
    return { method, url, headers: { ...describeFile(input), ...headers }, body };
  }
  if (isQuery || !hasFields) return { method, url, headers, body: null };
  const type = { 'content-type': 'application/json' };
  return { method, url, headers: { ...type, ...headers }, body: JSON.stringify(fields) };
}

function split(pair: string, separator: string, flag: string): [string, string] {
  const at = pair.indexOf(separator);
  if (at > 0) return [pair.slice(0, at).trim(), pair.slice(at + 1).trimStart()];
  throw new UsageError(`${flag} takes name${separator}value, not ${JSON.stringify(pair)}.`);
}

function readJsonField(pair: string): [string, unknown] {
  const [name, json] = split(pair, '=', '-F');
  try {
    return [name, JSON.parse(json)];
  } catch (error) {
    throw new UsageError(`-F ${name} is not JSON: ${messageOf(error)}. Use -f for text.`);
  }
}

function serviceUrl({ publicUrl, host, port }: Config): string {
  if (publicUrl !== null) return publicUrl;
  const reachable =
    { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[host] ?? (host.includes(':') ? `[${host}]` : host);
  return `http://${reachable}:${port}`;
}

/** Refuses the URL of another host, because that host would receive the key. */
function resolvePath(base: string, path: string): URL {
  const text = `${base.replace(/\/$/, '')}/${path.replace(/^\/+/, '')}`;
  if (/^[a-z]+:\/\//i.test(path) || !URL.canParse(text))
    throw new UsageError(`Write a path such as v1/users/u1, not ${JSON.stringify(path)}.`);
  return new URL(text);
}

const types: readonly (readonly [RegExp, string])[] = [
  [/\.csv(\.\w+)?$/i, 'text/csv'],
  [/\.(ndjson|jsonl)(\.\w+)?$/i, 'application/x-ndjson'],
  [/\.json$|^-$/i, 'application/json'],
];

function describeFile(input: string): Record<string, string> {
  const type = types.find(([pattern]) => pattern.test(input))?.[1] ?? 'application/octet-stream';
  const name = {
    'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(basename(input))}`,
  };
  return { 'content-type': type, ...(input === '-' ? {} : name) };
}

async function answer(
  { terminal }: Pick<Invocation, 'terminal'>,
  first: ApiRequest,
  key: string,
  paginate: boolean,
): Promise<void> {
  let next: ApiRequest | null = first;
  while (next !== null) {
    const request: ApiRequest = next;
    const response = await send(request, key);
    for await (const bytes of response.body ?? []) await terminal.write(bytes);
    if (request.method !== 'HEAD') await terminal.write('\n');
    if (!response.ok) {
      terminal.inform(`sluice: ${request.method} ${request.url.pathname}: HTTP ${response.status}`);
      process.exitCode = exitCodes.failed;
    }
    const link = paginate ? /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '') : null;
    // The host of the URL may not be reachable from this machine, so only its query is used.
    const query: string | null = link?.[1] === undefined ? null : new URL(link[1], request.url).search;
    next = query === null || terminal.closed ? null : { ...request, url: new URL(query, request.url) };
  }
}

async function send({ method, url, headers, body }: ApiRequest, key: string): Promise<Response> {
  try {
    return await fetch(url, {
      method,
      headers: { authorization: `Token ${key}`, ...headers },
      redirect: 'manual',
      ...(body === null
        ? {}
        : { body: typeof body === 'string' ? body : Readable.toWeb(body), duplex: 'half' }),
    } as RequestInit);
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new CommandFailed(
      `No answer from ${url.origin}: ${messageOf(cause)}. Is sluice started, and are PUBLIC_URL, HOST and PORT right?`,
    );
  }
}

/** `sluice env`, `sluice keys` and `sluice console`. */

import {
  choice,
  defineCommand,
  type Invocation,
  parsed,
  parseExpiry,
  parseListOf,
  required,
  text,
} from '../cli/define-command.ts';
import { CommandFailed } from '../cli/errors.ts';
import { printDone, printList } from '../cli/terminal.ts';
import { keyScopes } from '../domain/caller.ts';
import { exportLayouts } from '../domain/export.ts';
import { consolePath } from '../http/paths.ts';
import { render } from '../http/render.ts';
import { addEnvironment, closeSession, endKey, issueKey, replaceKey, setEnvironment } from './acts.ts';
import { createSignInLink } from './console-session.ts';
import { listEnvironments, readExportLayout } from './environment-store.ts';
import { type IssuedApiKey, listApiKeys, listSessions } from './key-store.ts';
import { renderEnvironment, renderKey } from './verify-key.ts';

const createEnv = defineCommand({
  name: 'create',
  summary: 'create an environment',
  description: 'Creates an environment. `sluice keys create --env NAME` then creates its first key.',
  argument: required('<name>', 'lower-case letters, digits, _ and -'),
  json: true,
  examples: ['sluice env create staging && sluice keys create --env staging'],
  inSession: async ({ system, argument, terminal, json }) => {
    const environment = await addEnvironment(system, argument);
    if (json) return terminal.json(renderEnvironment(environment));
    terminal.print(`Environment ${environment.name} was created; its app token is ${environment.appToken}.`);
    terminal.inform(`Next, a key for it: sluice keys create --env ${environment.name}`);
  },
});

const listEnvs = defineCommand({
  name: 'list',
  summary: 'all environments',
  description: 'Lists the environments and their public app tokens.',
  json: true,
  examples: ['sluice env list'],
  inSession: async (call) =>
    printList(call, (await listEnvironments(call.system.db)).map(renderEnvironment), {
      columns: ['name', 'app_token'],
      none: 'There are no environments yet; `sluice start` creates `default`.',
    }),
});

const originsOfEnv = defineCommand({
  name: 'origins',
  summary: 'pages that may send records',
  description:
    'Shows the origins whose pages may send records to an environment, or sets them. Servers notice within a second.',
  options: {
    set: text('--set <list>', 'origins with commas between; an empty text allows none'),
  },
  json: true,
  examples: ['sluice env origins --env shop --set https://shop.example.com'],
  inEnvironment: async (call) => {
    const { system, env, flags } = call;
    if (flags.set !== undefined) {
      const origins = flags.set.split(',').map((origin) => origin.trim());
      await setEnvironment(system, env, { allowed_origins: origins.filter(Boolean) });
    }
    const environment = (await listEnvironments(system.db)).find(({ name }) => name === env);
    printList(
      call,
      (environment?.allowedOrigins ?? []).map((origin) => ({ origin })),
      {
        columns: ['origin'],
        none: `No page may send records to ${env}: sluice env origins --env ${env} --set https://…`,
      },
    );
  },
});

const layoutOfEnv = defineCommand({
  name: 'layout',
  summary: 'layout of exports that name none',
  description: 'Shows which layout the exports of an environment have that name none, or sets it.',
  options: {
    set: choice('--set <layout>', 'a file of each kind, or one of rows of all kinds', exportLayouts),
  },
  json: true,
  examples: ['sluice env layout --env shop --set stream'],
  inEnvironment: async ({ system, environmentId, env, flags, terminal, json }) => {
    if (flags.set !== undefined) await setEnvironment(system, env, { export_layout: flags.set });
    const layout = await readExportLayout(system.db, environmentId);
    if (json) terminal.json({ export_layout: layout });
    else terminal.print(layout);
  },
});

export const environments = defineCommand({
  name: 'env',
  summary: 'environments: create, list, origins, layout',
  description: 'An environment is a tenant: no other reaches its profiles, loads and keys.',
  examples: ['sluice env create staging', 'sluice env list --json'],
  commands: [createEnv, listEnvs, originsOfEnv, layoutOfEnv],
});

const createKey = defineCommand({
  name: 'create',
  summary: 'create a key',
  description: 'Creates a key and prints it once, as the only text on standard output.',
  options: {
    label: text('--label <text>', 'what it is for', 'made by sluice keys create'),
    scopes: parsed(
      '--scopes <list>',
      'of ingest, import, export, read, delete, or browser alone; default: all but browser',
      parseListOf(keyScopes, `scopes are ${keyScopes.join(', ')}.`),
    ),
    expires: parsed(
      '--expires <when>',
      'a time from now such as 90d, or a date; default: never',
      parseExpiry,
    ),
  },
  json: true,
  examples: [
    'sluice keys create --label nightly --scopes import,read --expires 90d',
    'sluice keys create --label website --scopes browser',
    'KEY=$(sluice keys create --env staging)',
  ],
  inEnvironment: async (call) => {
    const { system, environmentId, flags } = call;
    const { label, scopes, expires } = flags;
    const newKey = { label, expiresAt: expires ?? null, ...(scopes === undefined ? {} : { scopes }) };
    printIssued(call, await issueKey(system, environmentId, newKey));
  },
});

const listKeys = defineCommand({
  name: 'list',
  summary: 'all keys of an environment',
  description: 'Lists the keys of an environment, also expired and revoked ones, without their secrets.',
  json: true,
  examples: ['sluice keys list --env staging'],
  inEnvironment: async (call) =>
    printList(call, (await listApiKeys(call.system.db, call.environmentId)).map(renderKey), {
      columns: ['key_id', 'status', 'label', 'scopes', 'expires_at'],
      none: `Environment ${call.env} has no keys; \`sluice keys create\` creates one.`,
    }),
});

const revokeKey = defineCommand({
  name: 'revoke',
  summary: 'revoke a key',
  description: 'Revokes a key for good. Repeating it does no harm.',
  argument: required('<key-id>', 'as `sluice keys list` shows it'),
  json: true,
  examples: ['sluice keys revoke 0tzwkpc87gq5'],
  inEnvironment: async (call) => {
    const { system, environmentId, argument: keyId } = call;
    await endKey(system, environmentId, keyId);
    printDone(call, { key_id: keyId, status: 'revoked' }, `Key ${keyId} is revoked.`);
  },
});

const rotateKey = defineCommand({
  name: 'rotate',
  summary: 'replace a key by a new one',
  description:
    'Creates a second key with the label and scopes of the first. Both work until the old one expires or is revoked.',
  argument: required('<key-id>', 'the old one, as `sluice keys list` shows it'),
  options: {
    oldExpires: parsed(
      '--old-expires <when>',
      'end of the old key: from now, such as 7d, or a date',
      parseExpiry,
    ),
    expires: parsed('--expires <when>', 'end of the new key; default: never', parseExpiry),
  },
  json: true,
  examples: ['sluice keys rotate 0tzwkpc87gq5 --old-expires 7d'],
  inEnvironment: async (call) => {
    const { system, environmentId, argument: keyId, flags, terminal } = call;
    const dates = { oldExpiresAt: flags.oldExpires ?? null, expiresAt: flags.expires ?? null };
    printIssued(call, await replaceKey(system, environmentId, keyId, dates));
    if (flags.oldExpires === undefined)
      terminal.inform(`The old key still works: sluice keys revoke ${keyId}`);
  },
});

/** Standard output has only the key, so that `$(…)` in a shell captures nothing else. */
function printIssued({ terminal, json }: Invocation, issued: IssuedApiKey): void {
  if (!json) terminal.inform(`Key ${issued.keyId} (${issued.label}), shown only this once:`);
  printDone({ terminal, json }, { ...renderKey(issued), key: issued.key }, issued.key);
}

export const keys = defineCommand({
  name: 'keys',
  summary: 'API keys: create, list, revoke, rotate',
  description: 'Keys open an environment. Only a digest is kept: a key is shown once, when it is created.',
  examples: ['sluice keys create --label "nightly import" --scopes import,read', 'sluice keys list'],
  commands: [createKey, listKeys, revokeKey, rotateKey],
});

const answerMs = 3_000;

const link = defineCommand({
  name: 'link',
  summary: 'print a link that signs in once',
  description: 'Prints a link to the console that signs in once, within 15 minutes, with all rights.',
  environment: 'environment that the console shows first',
  json: true,
  examples: ['sluice console link'],
  inEnvironment: async ({ system, environmentId, baseUrl, database, settings, terminal, json }) => {
    if (database.embedded !== null)
      throw new CommandFailed(
        `Nothing runs on ${settings.config.dataDir}. Run \`sluice start\` there first.`,
      );
    const url = `${baseUrl}${consolePath}#link=${await createSignInLink(system, environmentId)}`;
    printDone({ terminal, json }, { url }, url);
    const answers = await fetch(`${baseUrl}/health/live`, { signal: AbortSignal.timeout(answerMs) }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (answers) return;
    terminal.inform(`warning: no sluice answers at ${baseUrl} now. Is it started, and is PUBLIC_URL right?`);
  },
});

const sessions = defineCommand({
  name: 'sessions',
  summary: 'who is signed in',
  description: 'Lists the sessions of the console that are open in an environment, newest first.',
  json: true,
  examples: ['sluice console sessions', 'sluice console sessions --env staging --json'],
  inEnvironment: async (call) =>
    printList(call, (await listSessions(call.system.db, call.environmentId)).map(render), {
      columns: ['session_id', 'holder', 'key_id', 'subject', 'client', 'created_at', 'expires_at'],
      none: `Nobody is signed in to ${call.env}.`,
    }),
});

const end = defineCommand({
  name: 'end',
  summary: 'end a session',
  description: 'Ends a session of the console: its browser has to sign in again.',
  argument: required('<session>', 'as `sluice console sessions` shows it'),
  json: true,
  examples: ['sluice console end q3Zt0bV1kXyA'],
  inEnvironment: async (call) => {
    const { system, environmentId, argument: sessionId } = call;
    await closeSession(system, environmentId, sessionId);
    printDone(call, { session_id: sessionId, status: 'ended' }, `Session ${sessionId} has ended.`);
  },
});

export const consoleCommand = defineCommand({
  name: 'console',
  summary: 'the page in a browser: sign-in links, sessions',
  description: `The console is served at ${consolePath} by \`sluice start\` and \`sluice serve\`. A browser signs in with a key, or by a link.`,
  examples: ['sluice console link', 'sluice console sessions'],
  commands: [link, sessions, end],
});

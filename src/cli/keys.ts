import { keyStatus, renderKey } from '../access/render-key.ts';
import { scopes } from '../domain/scope.ts';
import {
  createApiKey,
  type IssuedApiKey,
  listApiKeys,
  revokeApiKey,
  rotateApiKey,
} from '../postgres/stores/api-keys.ts';
import { defineCommand, type Invocation } from './define-command.ts';
import { columnsOf, printable, printList } from './format.ts';
import { parsed, parseExpiry, parseListOf, required, text } from './options.ts';

const create = defineCommand({
  name: 'create',
  summary: 'make a key',
  description: 'Makes a key and shows it, this once, as the only text on standard output.',
  options: {
    label: text('--label <text>', 'what it is for', 'made by sluice keys create'),
    scopes: parsed(
      '--scopes <list>',
      'of ingest, import, export, read, delete; default: all',
      parseListOf(scopes, `scopes are ${scopes.join(', ')}.`),
    ),
    expires: parsed(
      '--expires <when>',
      'a time from now such as 90d, or a date; default: never',
      parseExpiry,
    ),
  },
  environment: true,
  json: true,
  examples: [
    'sluice keys create --label nightly --scopes import,read --expires 90d',
    'KEY=$(sluice keys create --env staging)',
  ],
  inEnvironment: async (call) => {
    const { system, environmentId, flags } = call;
    const { label, scopes, expires } = flags;
    const wish = { label, expiresAt: expires ?? null, ...(scopes === undefined ? {} : { scopes }) };
    printIssued(call, await createApiKey(system.db, environmentId, wish));
  },
});

const list = defineCommand({
  name: 'list',
  summary: 'all keys of an environment',
  description:
    'Lists the keys of an environment, the expired and revoked ones too; never the keys themselves.',
  environment: true,
  json: true,
  examples: ['sluice keys list --env staging'],
  inEnvironment: async (call) => {
    const { system, environmentId, env } = call;
    printList(call, {
      items: await listApiKeys(system.db, environmentId),
      render: renderKey,
      columns: columnsOf('key id', 'status', 'label', 'scopes', 'expires'),
      cells: (key) => [
        key.keyId,
        keyStatus(key),
        printable(key.label, 40),
        key.scopes.join(','),
        key.expiresAt?.toISOString().slice(0, 16) ?? 'never',
      ],
      none: `Environment ${env} has no key; \`sluice keys create\` makes one.`,
    });
  },
});

const revoke = defineCommand({
  name: 'revoke',
  summary: 'revoke a key',
  description: 'Revokes a key for good: it is refused from now on. Repeating it does no harm.',
  argument: required('<key-id>', 'as `sluice keys list` shows it'),
  environment: true,
  json: true,
  examples: ['sluice keys revoke 0tzwkpc87gq5'],
  inEnvironment: async ({ system, environmentId, argument: keyId, terminal, json }) => {
    await revokeApiKey(system.db, environmentId, keyId);
    if (json) terminal.json({ key_id: keyId, status: 'revoked' });
    else terminal.print(`Key ${keyId} is refused from now on.`);
  },
});

const rotate = defineCommand({
  name: 'rotate',
  summary: 'replace a key by a new one',
  description:
    'Makes a second key with the label and scopes of the first. Both work until the old one expires or is revoked.',
  argument: required('<key-id>', 'the old one, as `sluice keys list` shows it'),
  options: {
    oldExpires: parsed(
      '--old-expires <when>',
      'end of the old key: from now, such as 7d, or a date',
      parseExpiry,
    ),
    expires: parsed('--expires <when>', 'end of the new key; default: never', parseExpiry),
  },
  environment: true,
  json: true,
  examples: ['sluice keys rotate 0tzwkpc87gq5 --old-expires 7d'],
  inEnvironment: async (call) => {
    const { system, environmentId, argument: keyId, flags, terminal } = call;
    const dates = { oldExpiresAt: flags.oldExpires ?? null, expiresAt: flags.expires ?? null };
    printIssued(call, await rotateApiKey(system.db, environmentId, keyId, dates));
    if (flags.oldExpires === undefined)
      terminal.inform(`The old key still works: sluice keys revoke ${keyId}`);
  },
});

/** The only time that the key itself is shown. The key alone is on standard output, so that `$(…)` can take it. */
function printIssued({ terminal, json }: Invocation, issued: IssuedApiKey): void {
  if (json) {
    terminal.json({ ...renderKey(issued), key: issued.key });
    return;
  }
  terminal.inform(`Key ${issued.keyId} (${issued.label}), shown only this once:`);
  terminal.print(issued.key);
}

export const keys = defineCommand({
  name: 'keys',
  summary: 'API keys: create, list, revoke, rotate',
  description:
    'The keys that open an environment. Only a digest is kept: a key is shown once, when it is made.',
  examples: ['sluice keys create --label "nightly import" --scopes import,read', 'sluice keys list'],
  commands: [create, list, revoke, rotate],
});

import { createSignInLink } from '../access/console-session.ts';
import { consolePath } from '../console/assets.ts';
import { type ConsoleSession, endSession, listSessions } from '../postgres/stores/api-keys.ts';
import { defineCommand } from './define-command.ts';
import { CommandFailed } from './errors.ts';
import { columnsOf, printable, printList } from './format.ts';
import { required } from './options.ts';

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
    const url = `${baseUrl}${consolePath}#link=${await createSignInLink(system.db, environmentId)}`;
    if (json) terminal.json({ url });
    else terminal.print(url);
    const answers = await fetch(`${baseUrl}/health/live`, { signal: AbortSignal.timeout(answerMs) }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (!answers)
      terminal.inform(
        `warning: no sluice answers at ${baseUrl} now. Is it started, and is PUBLIC_URL right?`,
      );
  },
});

const sessions = defineCommand({
  name: 'sessions',
  summary: 'who is signed in',
  description: 'Lists the sessions of the console that are open in an environment, newest first.',
  environment: true,
  json: true,
  examples: ['sluice console sessions', 'sluice console sessions --env staging --json'],
  inEnvironment: async (call) => {
    const { system, environmentId, env } = call;
    printList(call, {
      items: await listSessions(system.db, environmentId),
      render,
      columns: columnsOf('session', 'with', 'client', 'begun', 'ends'),
      cells: (session) => [
        session.sessionId,
        session.keyId ?? session.holder,
        printable(session.client, 40),
        session.createdAt.toISOString().slice(0, 16),
        session.expiresAt.toISOString().slice(0, 16),
      ],
      none: `Nobody is signed in to ${env}.`,
    });
  },
});

const end = defineCommand({
  name: 'end',
  summary: 'end a session',
  description: 'Ends a session of the console: its browser has to sign in again.',
  argument: required('<session>', 'as `sluice console sessions` shows it'),
  environment: true,
  json: true,
  examples: ['sluice console end q3Zt0bV1kXyA'],
  inEnvironment: async ({ system, environmentId, argument: sessionId, terminal, json }) => {
    await endSession(system.db, environmentId, sessionId);
    if (json) terminal.json({ session_id: sessionId, status: 'ended' });
    else terminal.print(`Session ${sessionId} is ended.`);
  },
});

function render(session: ConsoleSession) {
  return {
    session_id: session.sessionId,
    holder: session.holder,
    key_id: session.keyId,
    client: session.client,
    created_at: session.createdAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
  };
}

export const consoleCommand = defineCommand({
  name: 'console',
  summary: 'the page in a browser: sign-in links, sessions',
  description: `The console is served at ${consolePath} by \`sluice start\` and \`sluice serve\`. A browser signs in with a key, or by a link.`,
  examples: ['sluice console link', 'sluice console sessions'],
  commands: [link, sessions, end],
});

/* The same thing once more, on another way: words of a shell, and what every form of a request needs. */
import { session } from './api.ts';

export interface Form {
  /** Such as `curl`, `Command line`, `Schedule`. */
  readonly name: string;
  readonly text: string;
  readonly hint?: string;
}

export const authorization = '-H "Authorization: Token $SLUICE_KEY"';

/** Returns the text as one word of a shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Returns the words as one command on several lines. */
export function command(words: readonly string[]): string {
  return words.join(' \\\n  ');
}

export function environmentName(): string {
  return session.value?.environment ?? 'default';
}

/** Returns the flag that names the environment. A key belongs to one; the command line has to be told. */
export function inEnvironment(): readonly string[] {
  const name = environmentName();
  return name === 'default' ? [] : [`--env ${shellWord(name)}`];
}

/** Begins a schedules file; nobody needs to name the default environment. */
export function scheduleHead(name: string): readonly string[] {
  const environment = environmentName();
  return [
    'schedules:',
    `  - name: ${name}`,
    ...(environment === 'default' ? [] : [`    environment: ${environment}`]),
    '    cron: "0 3 * * *"',
  ];
}

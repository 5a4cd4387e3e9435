import { originKinds } from './task.ts';

export const actorKinds = [...originKinds, 'link', 'service', 'anonymous'] as const;

/** Who acts, and from where. */
export interface Actor {
  readonly kind: (typeof actorKinds)[number];
  /** Public id of the key, or name of the person or account. `null` if there is none. */
  readonly name: string | null;
  /** Session of the console. Default: none. */
  readonly sessionId?: string | null;
  /** IP address of the request, or the host of a command. Default: this process. */
  readonly address?: string | null;
}

export const serviceActor: Actor = { kind: 'service', name: null };

/** An act that was done. It contains counts instead of record ids, and never a secret. */
export interface Act {
  /** Noun and verb, such as `key.created`. */
  readonly action: `${string}.${string}`;
  /** `null` for an act that concerns the whole service. */
  readonly environmentId: number | null;
  /** Public id or name of the thing. */
  readonly thing: string | null;
  readonly details?: Readonly<Record<string, string | number | boolean | null>>;
  /** True if a single purpose may need the act many times, as when a file is read in parts. */
  readonly isFrequent?: true;
}

/** A credential that was refused. Does not contain the credential itself. */
export interface RefusedAttempt {
  readonly action: `${string}.refused`;
  readonly reason: string;
  readonly address: string;
}

import { originKinds } from './task.ts';

export const actorKinds = [...originKinds, 'link', 'service', 'anonymous'] as const;

export interface Actor {
  readonly kind: (typeof actorKinds)[number];
  /** Public id of a key, or name of a person or account. `null` if the actor has no name. */
  readonly name: string | null;
  readonly sessionId?: string | null;
  /** IP address of the request, or host of the command. Missing for the service itself. */
  readonly address?: string | null;
}

export const serviceActor: Actor = { kind: 'service', name: null };

/** A completed act, with counts instead of record ids, and never a secret. */
export interface Act {
  /** Name of the act: a noun and a verb, such as `key.created`. */
  readonly action: `${string}.${string}`;
  /** Environment of the act. `null` for an act that concerns the whole service. */
  readonly environmentId: number | null;
  readonly thing: string | null;
  readonly details?: Readonly<Record<string, string | number | boolean | null>>;
  /**
   * True if a client may repeat the act many times for one purpose, such as reading a file in
   * parts.
   */
  readonly isFrequent?: true;
}

/** A refused request or sign-in. The refused credential is not recorded. */
export interface RefusedAttempt {
  readonly action: `${string}.refused`;
  readonly reason: string;
  readonly address: string;
}

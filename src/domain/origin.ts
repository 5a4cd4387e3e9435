/** Who or what starts jobs. */
export const originKinds = ['api_key', 'schedule', 'inbox', 'command_line'] as const;

export interface Origin {
  readonly kind: (typeof originKinds)[number];
  /** Id of the key, name of the schedule, or place in the inbox; null: there is none. */
  readonly name: string | null;
}

/** The columns of a job. */
export function originColumns(origin: Origin | null): {
  readonly origin: string | null;
  readonly origin_name: string | null;
} {
  return { origin: origin?.kind ?? null, origin_name: origin?.name?.slice(0, maxNameChars) ?? null };
}

const maxNameChars = 500;

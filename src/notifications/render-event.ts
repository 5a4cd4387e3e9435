import { sql } from 'kysely';
import type { EventType } from '../domain/notification.ts';
import type { Database } from '../postgres/database.ts';

/** What a webhook carries; e-mail is composed from it. */
export interface EventBody {
  readonly id: string;
  readonly type: EventType;
  readonly created_at: string;
  readonly environment: { readonly name: string; readonly app_token: string };
  readonly data: Readonly<Record<string, unknown>>;
}

/** The text that is kept and sent: written once, so that every try has the same bytes. Its time is the transaction's. */
export async function renderEvent(
  db: Database,
  event: {
    readonly eventId: string;
    readonly environmentId: number;
    readonly type: EventType;
    readonly data: object;
  },
): Promise<string> {
  const environment = await db
    .selectFrom('environments')
    .select(['name', 'app_token', sql<Date>`now()`.as('now')])
    .where('environment_id', '=', event.environmentId)
    .executeTakeFirstOrThrow();
  const body: EventBody = {
    id: event.eventId,
    type: event.type,
    created_at: environment.now.toISOString(),
    environment: { name: environment.name, app_token: environment.app_token },
    data: event.data as EventBody['data'],
  };
  return JSON.stringify(body);
}

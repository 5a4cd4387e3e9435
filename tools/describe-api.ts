import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { readConfig } from '../src/base/config.ts';
import type { System } from '../src/context.ts';
import type { ApiDocument } from '../src/http/api-document.ts';
import { createApp } from '../src/processes/app.ts';

/**
 * The app without a database or a server that listens, to look at. Of the system only what registering the routes takes
 * is there: no request can be made.
 */
export function createIdleApp(): FastifyInstance {
  return createApp({ config: readConfig({}), log: pino({ level: 'silent' }) } as System);
}

export async function describeApi(): Promise<ApiDocument> {
  const app = createIdleApp();
  try {
    await app.ready();
    return app.swagger() as unknown as ApiDocument;
  } finally {
    await app.close();
  }
}

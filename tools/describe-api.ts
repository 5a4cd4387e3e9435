import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { readConfig } from '../src/base/config.ts';
import type { System } from '../src/context.ts';
import type { ApiDocument } from '../src/http/api-document.ts';
import { createApp } from '../src/processes/app.ts';

/**
 * Returns the app without a database or a listening server, for reading its routes. The app cannot
 * serve requests, because its system has only the parts required to register routes.
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

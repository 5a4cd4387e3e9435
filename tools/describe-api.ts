import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { readConfig } from '../src/base/config.ts';
import type { System } from '../src/context.ts';
import type { ApiDocument } from '../src/http/api-document.ts';
import { createApp } from '../src/processes/app.ts';

/** The app cannot serve requests: its system has only what the registration of routes requires. */
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

import { pino } from 'pino';
import { expect, test } from 'vitest';
import { InboxLock } from '../../../src/capabilities/inbox/store.ts';
import { ConnectionMonitor } from '../../../src/postgres/connection-monitor.ts';
import { cleanUpAfter } from '../../support/cleanups.ts';
import { createTestDatabase } from '../../support/servers/postgres.ts';
import { startPostgresProxy } from '../../support/servers/postgres-proxy.ts';

test('a silent connection loses the lock of an inbox to another process', async () => {
  const database = await createTestDatabase();
  cleanUpAfter('test', () => database.drop());
  const proxy = await startPostgresProxy(database.url);
  cleanUpAfter('test', () => proxy.close());
  const [lockOfProxy, otherLock] = [proxy.url, database.url].map((url) => {
    const monitor = new ConnectionMonitor({ url, log: pino({ level: 'silent' }) });
    cleanUpAfter('test', async () => monitor.close());
    return new InboxLock({ url, monitor }, 'an inbox', () => undefined);
  }) as [InboxLock, InboxLock];
  expect(await lockOfProxy.hold()).toBe(true);
  expect(await otherLock.hold()).toBe(false);
  proxy.silence();
  await expect(lockOfProxy.hold()).rejects.toThrow('the database gave no answer');
  expect(await otherLock.hold()).toBe(true);
  await otherLock.release();
});

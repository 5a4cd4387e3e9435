import type { Config } from '../config.ts';
import { checkSmtpServer } from '../notifications/mail-transport.ts';
import { type Finding, ok } from './finding.ts';

/** Connects and logs in, and sends nothing. */
export async function checkSmtp({
  smtpUrl,
  outboxDir,
}: Pick<Config, 'smtpUrl' | 'outboxDir'>): Promise<Finding[]> {
  const check = 'smtp';
  if (smtpUrl === null) return [ok(check, `not set: messages are written to ${outboxDir}`)];
  await checkSmtpServer(smtpUrl);
  const { username, host } = new URL(smtpUrl);
  return [ok(check, `${host} answers${username === '' ? '' : ' and takes the login'}`)];
}

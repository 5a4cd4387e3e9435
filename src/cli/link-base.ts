import type { Config } from '../config.ts';

/** What links begin with where no request says it: PUBLIC_URL, or where `sluice start` listens. Empty if any port will do. */
export function linkBase({ publicUrl, host, port }: Config): string {
  if (publicUrl !== null) return publicUrl;
  return port === 0 ? '' : `http://${host}:${port}`;
}

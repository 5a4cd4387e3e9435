import type { Config } from '../config.ts';
import type { Finding } from './finding.ts';

const shortest = 3;

/**
 * Takes the secrets of the configuration out of what was found: programs that we ask say in their own words what is wrong
 * with what they were given.
 */
export function hideSecrets(findings: readonly Finding[], config: Config): Finding[] {
  const secrets = secretsOf(config);
  const hide = (text: string): string =>
    secrets.reduce((shown, secret) => shown.replaceAll(secret, '[secret]'), text);
  return findings.map((each) => ({
    ...each,
    found: hide(each.found),
    advice: each.advice === null ? null : hide(each.advice),
  }));
}

/** Longest first, so that one that holds another goes as a whole. */
function secretsOf(config: Config): string[] {
  const { databaseUrl, redisUrl, smtpUrl, publicUrl, storage } = config;
  const credentials = storage.kind === 's3' ? storage.credentials : null;
  const found = [
    ...[databaseUrl, redisUrl, smtpUrl, publicUrl].flatMap(passwordsOf),
    config.apiKey,
    config.metricsToken,
    config.adminKey,
    credentials?.secretAccessKey,
    credentials?.sessionToken,
  ];
  return found
    .filter((secret): secret is string => typeof secret === 'string' && secret.length >= shortest)
    .sort((a, b) => b.length - a.length);
}

/** As it stands in the URL, and as it is meant. */
function passwordsOf(url: string | null): string[] {
  if (url === null || !URL.canParse(url)) return [];
  const { password } = new URL(url);
  return [url, password, decode(password)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

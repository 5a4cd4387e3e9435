import { digestKey, matchesDigest } from './key-text.ts';

const user = 'admin';

/**
 * Says of Authorization headers whether they bear the admin key: as the password of `admin` (Basic), or as a Bearer token;
 * in a time that does not tell how far they agree.
 */
export function createAdminCheck(adminKey: string): (header: string | undefined) => boolean {
  const digest = digestKey(adminKey);
  return (header = '') => {
    const [, scheme = '', value = ''] = /^(\S+) +(\S+)$/.exec(header.trim()) ?? [];
    if (scheme.toLowerCase() === 'bearer') return matchesDigest(value, digest);
    if (scheme.toLowerCase() !== 'basic') return false;
    const [name = '', ...password] = Buffer.from(value, 'base64').toString('utf8').split(':');
    return matchesDigest(password.join(':'), digest) && name === user;
  };
}

import { readFile } from 'node:fs/promises';

/** The most memory that a process has held so far, in bytes; null where the system does not say. */
export async function peakMemory(pid: number): Promise<number | null> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
    return kilobytes === undefined ? null : Number(kilobytes) * 1024;
  } catch {
    // Not Linux, or the process has just ended.
    return pid === process.pid ? process.resourceUsage().maxRSS * 1024 : null;
  }
}

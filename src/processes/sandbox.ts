import { serveTasks } from '../base/sandbox/sandbox.ts';
import { loadTasks } from '../load/sandbox-tasks.ts';
import { capabilities } from '../registry.ts';

/* The program of a sandbox: a separate entry point, without anything that a sandbox does not need. */
const rewriter = capabilities.find((each) => each.rewriter)?.rewriter ?? null;
const ofCapabilities = await Promise.all(capabilities.map(({ sandboxTasks }) => sandboxTasks?.(rewriter)));
serveTasks(Object.assign({}, loadTasks, ...ofCapabilities));

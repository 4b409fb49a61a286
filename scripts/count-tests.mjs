// Adds up vitest's JSON reports and prints the sum as the last line; fails when a test failed, was skipped, or none ran.
import { readFileSync } from 'node:fs';

let passed = 0;
let failed = 0;
let skipped = 0;
for (const file of process.argv.slice(2)) {
  const report = JSON.parse(readFileSync(file, 'utf8'));
  passed += report.numPassedTests;
  failed +=
    report.numFailedTests +
    report.testResults.filter(
      ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
    ).length;
  skipped += report.numPendingTests + report.numTodoTests;
}
if (skipped > 0) console.log(`${skipped} tests were skipped.`);
console.log(`tests: ${passed} passed, ${failed} failed`);
process.exit(failed > 0 || skipped > 0 || passed === 0 ? 1 : 0);

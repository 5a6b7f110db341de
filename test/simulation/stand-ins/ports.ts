// The ports of the services, through their public entries.
import type { DedupOptions } from '@weir/dedup'
import type { PolicyOptions } from '@weir/policy'

export type ClaimLedger = DedupOptions['ledger']
export type DedupCodec = DedupOptions['codec']
export type ClaimRequest = Parameters<ClaimLedger['claim']>[2][number]
export type ClaimAnswer = NonNullable<Awaited<ReturnType<ClaimLedger['claim']>>>[number]
export type RestoredClaim = Parameters<ClaimLedger['restore']>[1][number]
export type BusinessClaim = NonNullable<ClaimRequest['businessKey']>

export type PolicyLedger = PolicyOptions['ledger']
export type DeliveryLedger = PolicyOptions['deliveries']
export type PolicyCodec = PolicyOptions['codec']
export type RateLimiter = PolicyOptions['limiter']
export type PolicyClaimRequest = Parameters<PolicyLedger['claim']>[2][number]
export type ClaimTime = Parameters<PolicyLedger['claim']>[3]
export type CeilingAsk = PolicyClaimRequest['proposal']['ceilings'][number]
export type Look = Awaited<ReturnType<PolicyLedger['look']>>
export type StoredVerdict = Look['stored'][number]
export type AttemptId = Parameters<PolicyLedger['look']>[1][number]
export type GroupQuestion = Parameters<PolicyLedger['look']>[2][number]
export type WaitingLook = Awaited<ReturnType<PolicyLedger['candidates']>>
export type WaitingDelivery = Awaited<ReturnType<PolicyLedger['fetchWaiting']>>[number]
export type Restoration = Parameters<PolicyLedger['restore']>[1]
export type OpenDelivery = Awaited<ReturnType<DeliveryLedger['lookReports']>>['deliveries'][number]
export type StoredOutcome = Awaited<ReturnType<DeliveryLedger['lookReports']>>['outcomes'][number]
export type ReportKey = Parameters<DeliveryLedger['lookReports']>[1][number]
export type ReportLook = Awaited<ReturnType<DeliveryLedger['lookReports']>>
export type OverdueLook = Awaited<ReturnType<DeliveryLedger['overdue']>>
export type DeliveryRestoration = Parameters<DeliveryLedger['restoreDeliveries']>[1]
export type ParkReason = Parameters<PolicyLedger['park']>[2]
export type RateRequest = Parameters<RateLimiter['ask']>[0][number]
export type RateAnswer = Awaited<ReturnType<RateLimiter['ask']>>[number]
